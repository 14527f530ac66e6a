"""What the Python client does most: typed and custom objects, patches, watches, errors."""

import sys

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
apps = client.AppsV1Api()
custom = client.CustomObjectsApi()
NS = "python"


def refused(code, call):
    try:
        call()
    except ApiException as error:
        assert error.status == code, error
        return error
    raise AssertionError(f"expected {code}")


core.create_namespace({"metadata": {"name": NS}})
core.create_namespaced_config_map(NS, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"k": "v"}))
refused(409, lambda: core.create_namespaced_config_map(NS, {"metadata": {"name": "a"}}))
refused(404, lambda: core.read_namespaced_config_map("none", NS))
assert core.read_namespaced_config_map("a", NS).data == {"k": "v"}

# A dict is a strategic merge patch, a list a JSON patch.
core.patch_namespaced_config_map("a", NS, {"data": {"l": "m"}})
core.patch_namespaced_config_map("a", NS, [{"op": "add", "path": "/data/n", "value": "o"}])
assert core.read_namespaced_config_map("a", NS).data == {"k": "v", "l": "m", "n": "o"}

container = client.V1Container(name="c", image="nginx", resources={"requests": {"cpu": "100m"}})
template = client.V1PodTemplateSpec(metadata={"labels": {"a": "b"}}, spec=client.V1PodSpec(containers=[container]))
spec = client.V1DeploymentSpec(replicas=1, selector={"matchLabels": {"a": "b"}}, template=template)
made = apps.create_namespaced_deployment(NS, client.V1Deployment(metadata={"name": "d"}, spec=spec))
assert made.spec.strategy.type == "RollingUpdate"
apps.patch_namespaced_deployment_scale("d", NS, {"spec": {"replicas": 3}})
assert apps.read_namespaced_deployment_scale("d", NS).spec.replicas == 3
refused(422, lambda: apps.patch_namespaced_deployment("d", NS, {"spec": {"selector": {"matchLabels": {"a": "c"}}}}))

listed = core.list_namespaced_config_map(NS, limit=1)
assert len(listed.items) == 1 and listed.metadata._continue
rest = core.list_namespaced_config_map(NS, limit=10, _continue=listed.metadata._continue)
assert len(rest.items) >= 1

seen = []
version = core.list_namespaced_config_map(NS).metadata.resource_version
core.create_namespaced_config_map(NS, {"metadata": {"name": "w"}})
core.delete_namespaced_config_map("w", NS)
for event in watch.Watch().stream(core.list_namespaced_config_map, NS, resource_version=version, timeout_seconds=2):
    if event["object"].metadata.name == "w":
        seen.append(event["type"])
assert seen == ["ADDED", "DELETED"], seen

definition = {
    "metadata": {"name": "snakes.python.example.com"},
    "spec": {
        "group": "python.example.com", "scope": "Namespaced", "names": {"plural": "snakes", "kind": "Snake"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"length": {"type": "integer"}}}}}}}],
    },
}
client.ApiextensionsV1Api().create_custom_resource_definition(definition)
where = ("python.example.com", "v1", NS, "snakes")
snake = {"apiVersion": "python.example.com/v1", "kind": "Snake", "metadata": {"name": "s"}, "spec": {"length": 3}}
custom.create_namespaced_custom_object(*where, snake)
custom.patch_namespaced_custom_object(*where, "s", {"spec": {"length": 4}})
assert custom.get_namespaced_custom_object(*where, "s")["spec"]["length"] == 4
refused(422, lambda: custom.patch_namespaced_custom_object(*where, "s", {"spec": {"length": "long"}}))
assert len(custom.list_namespaced_custom_object(*where)["items"]) == 1
custom.delete_namespaced_custom_object(*where, "s")
client.ApiextensionsV1Api().delete_custom_resource_definition("snakes.python.example.com")

assert client.VersionApi().get_code().major == "1"
core.delete_namespace(NS)
print("all well")
