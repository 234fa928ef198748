"""Where the API server is and who we are: the service account in a pod, else the person's kubeconfig.

Only this module and `client` import the official client, and only when an API adapter is asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from steps.contracts.errors import BadInput

TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
DEFAULT_KUBECONFIG: Final = ".kube/config"


def configuration(environment: Mapping[str, str]) -> Any:
    """A configuration of the client, without its own retries. Raises BadInput with what to set."""
    from kubernetes.client import Configuration  # noqa: PLC0415 - the client costs 0.5 s and 40 MiB

    found = Configuration()
    found.retries = False  # by default a late GET or DELETE is sent four times (facts/kubernetes section 1)
    if environment.get("KUBERNETES_SERVICE_HOST") and TOKEN.is_file():
        _from_service_account(found)
    else:
        _from_kubeconfig(found, _kubeconfig(environment))
    return found


def _from_service_account(found: Any) -> None:
    from kubernetes.config import ConfigException, load_incluster_config  # noqa: PLC0415

    try:
        load_incluster_config(client_configuration=found)
    except (ConfigException, OSError) as error:
        raise BadInput(f"the service account of this pod cannot be used: {error}; mount its token") from error


def _kubeconfig(environment: Mapping[str, str]) -> str:
    """KUBECONFIG, which may list several files, else the file in the home folder."""
    home = environment.get("HOME") or "/"
    return environment.get("KUBECONFIG") or str(Path(home) / DEFAULT_KUBECONFIG)


def _from_kubeconfig(found: Any, kubeconfig: str) -> None:
    import yaml  # noqa: PLC0415
    from kubernetes.config import ConfigException, load_kube_config  # noqa: PLC0415

    if not any(Path(one).exists() for one in kubeconfig.split(":") if one):
        raise BadInput(f"kubeconfig {kubeconfig} does not exist; set KUBECONFIG to one, or run in a pod with a service account")
    try:
        load_kube_config(config_file=kubeconfig, client_configuration=found, persist_config=False)
    except OSError as error:
        raise BadInput(
            f"kubeconfig {kubeconfig} cannot be read: {error.strerror}; set KUBECONFIG to one that is readable"
        ) from error
    except (ConfigException, yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError) as error:
        words = " ".join(str(error).split())[:200]
        raise BadInput(f"kubeconfig {kubeconfig} cannot be used: {words}; correct it (kubectl config view shows it)") from error
