"""What each shipped account may do, and what not, asked of a real API server."""

import pytest

from tests.cluster.lab.lab import Lab
from tests.cluster.rights import MAY, MAY_NOT, OWN

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(("account", "verb", "resource", "namespace"), MAY)
def test_an_account_may_do_what_its_steps_do(installed: Lab, account: str, verb: str, resource: str, namespace: str | None) -> None:
    assert installed.kubectl.may(f"{OWN}:{account}", verb, resource, namespace)


@pytest.mark.parametrize(("account", "verb", "resource", "namespace"), MAY_NOT)
def test_an_account_may_do_nothing_more(installed: Lab, account: str, verb: str, resource: str, namespace: str | None) -> None:
    assert not installed.kubectl.may(f"{OWN}:{account}", verb, resource, namespace)
