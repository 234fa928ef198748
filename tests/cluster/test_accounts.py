"""What each shipped account may do, and what not, asked of a real API server."""

from collections.abc import Mapping

import pytest

from tests.cluster.lab.kubectl import access_review
from tests.cluster.lab.lab import Lab
from tests.cluster.rights import MAY, MAY_NOT, OWN, Right

pytestmark = pytest.mark.cluster


def words(right: Right) -> str:
    account, verb, resource, namespace = right
    return f"{account} {verb} {resource} in {namespace or 'all'}"


@pytest.fixture(scope="module")
def granted(installed: Lab) -> Mapping[Right, bool]:
    """The server's answer about every right, asked at once: a start of kubectl costs more than a hundred answers."""
    rights = [*MAY, *MAY_NOT]
    reviews = [access_review(f"{OWN}:{account}", verb, resource, namespace) for account, verb, resource, namespace in rights]
    return dict(zip(rights, installed.kubectl.may_each(reviews), strict=True))


@pytest.mark.parametrize("right", MAY, ids=words)
def test_an_account_may_do_what_its_steps_do(granted: Mapping[Right, bool], right: Right) -> None:
    assert granted[right]


@pytest.mark.parametrize("right", MAY_NOT, ids=words)
def test_an_account_may_do_nothing_more(granted: Mapping[Right, bool], right: Right) -> None:
    assert not granted[right]
