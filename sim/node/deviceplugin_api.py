"""Kubelet's device plugin API v1beta1 as protobuf messages, built from a table: no generated code, no compiler.

Names and numbers are those of api.proto in module k8s.io/kubelet v0.34 (pkg/apis/deviceplugin/v1beta1). `devices_ids` was
devicesIDs before; a wrong name makes every Allocate fail, and a ReplicaSet answers that with new pods without a pause.
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

PACKAGE: Final = "v1beta1"
VERSION: Final = "v1beta1"
REGISTRATION: Final = f"{PACKAGE}.Registration"
DEVICE_PLUGIN: Final = f"{PACKAGE}.DevicePlugin"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"

_F: Final = descriptor_pb2.FieldDescriptorProto
Field = tuple[str, int, str]
"""name, number, type: string, bool, `[]` in front for repeated; a message's name; `map` for string to string."""

MESSAGES: Final[dict[str, tuple[Field, ...]]] = {
    "Empty": (),
    "DevicePluginOptions": (("pre_start_required", 1, "bool"), ("get_preferred_allocation_available", 2, "bool")),
    "RegisterRequest": (
        ("version", 1, "string"),
        ("endpoint", 2, "string"),
        ("resource_name", 3, "string"),
        ("options", 4, "DevicePluginOptions"),
    ),
    "Device": (("ID", 1, "string"), ("health", 2, "string")),
    "ListAndWatchResponse": (("devices", 1, "[]Device"),),
    "ContainerAllocateRequest": (("devices_ids", 1, "[]string"),),
    "AllocateRequest": (("container_requests", 1, "[]ContainerAllocateRequest"),),
    "Mount": (("container_path", 1, "string"), ("host_path", 2, "string"), ("read_only", 3, "bool")),
    "DeviceSpec": (("container_path", 1, "string"), ("host_path", 2, "string"), ("permissions", 3, "string")),
    "ContainerAllocateResponse": (("envs", 1, "map"), ("mounts", 2, "[]Mount"), ("devices", 3, "[]DeviceSpec")),
    "AllocateResponse": (("container_responses", 1, "[]ContainerAllocateResponse"),),
    "PreStartContainerRequest": (("devices_ids", 1, "[]string"),),
    "PreStartContainerResponse": (),
}


def _add_map(message: Any, name: str, number: int) -> None:
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    for key, place in (("key", 1), ("value", 2)):
        entry.field.add(name=key, number=place, type=_F.TYPE_STRING, label=_F.LABEL_OPTIONAL)
    kind = f".{PACKAGE}.{message.name}.{entry.name}"
    message.field.add(name=name, number=number, type=_F.TYPE_MESSAGE, type_name=kind, label=_F.LABEL_REPEATED)


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    label = _F.LABEL_REPEATED if kind.startswith("[]") else _F.LABEL_OPTIONAL
    word = kind.removeprefix("[]")
    scalar = {"string": _F.TYPE_STRING, "bool": _F.TYPE_BOOL}.get(word)
    if scalar is not None:
        message.field.add(name=name, number=number, type=scalar, label=label)
    else:
        message.field.add(name=name, number=number, type=_F.TYPE_MESSAGE, type_name=f".{PACKAGE}.{word}", label=label)


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="gpu_sim/deviceplugin.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            if kind == "map":
                _add_map(message, field, number)
            else:
                _add_field(message, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


MESSAGE: Final = _classes()
"""The message classes by name."""
