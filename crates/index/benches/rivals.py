#!/usr/bin/env python3
"""Measures searches over many clusters: Atoll's index beside karmada-search, over the same members.

usage, in the checkout: crates/index/benches/rivals.py ATOLL KARMADA_SEARCH [PODS]
KARMADA_SEARCH is `go build -mod=mod github.com/karmada-io/karmada/cmd/karmada-search` in a copy of
tests/peers/modules/karmada; the other programs are those of tests/peers/build. With `-` only Atoll is measured.
Members are ten instances of one hub. Both read them by list and watch; both are asked over HTTPS, one
request after the other on one connection.
"""
import http.client, json, os, shutil, socket, ssl, subprocess, sys, tempfile, time

ATOLL, SEARCH = sys.argv[1], sys.argv[2]
PODS = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
MEMBERS = [f"m{n}" for n in range(10)]
ROOT = os.path.abspath(".")
CACHE = os.environ.get("ATOLL_PEERS", os.path.expanduser("~/.cache/atoll/peers"))
AGGREGATED = f"{CACHE}/bin/karmada-aggregated-apiserver"
children = []


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pod(member, number):
    return {
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": f"web-{number // 10}-{number}", "namespace": f"team-{number % 50}", "uid": f"00000000-0000-4000-8000-{member:02}{number:010}",
                     "creationTimestamp": "2024-01-01T00:00:00Z",
                     "labels": {"app": f"app-{number % 500}", "tier": "web" if number % 2 == 0 else "db", "pod-template-hash": f"{number:x}"}},
        "spec": {"nodeName": f"node-{number % 100}", "containers": [{"name": "main", "image": "registry.example/web:1.2.3",
                 "env": [{"name": f"VARIABLE_{n}", "value": "some text of usual length"} for n in range(10)],
                 "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": f"C{n}", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"} for n in range(4)]},
    }


class Server:
    def __init__(self, url, token):
        self.address, self.token = url.removeprefix("https://"), token
        self.open()

    def open(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a measurement on the loopback
        self.link = http.client.HTTPSConnection(self.address, context=context, timeout=300)

    def ask(self, verb, path, body=None, kind="application/json"):
        headers = {"authorization": f"Bearer {self.token}", "content-type": kind}
        self.link.request(verb, path, json.dumps(body) if body is not None else None, headers)
        answer = self.link.getresponse()
        return answer.status, answer.read()

    def must(self, verb, path, body=None, kind="application/json"):
        code, text = self.ask(verb, path, body, kind)
        assert code < 300, (verb, path, code, text[:400])
        return text


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])


def measure(what, server, paths, rounds):
    times, size, count = [], 0, 0
    for n in range(rounds):
        start = time.perf_counter()
        code, text = server.ask("GET", paths(n))
        times.append((time.perf_counter() - start) * 1000)
        assert code == 200, (what, code, text[:300])
        size = len(text)
    try:
        count = len(json.loads(text).get("items") or [])
    except ValueError:
        pass
    times.sort()
    print(f"{what:<44} p50 {times[len(times) // 2]:8.1f} ms  p99 {times[int((len(times) - 1) * .99)]:8.1f} ms  ({count} objects, {size // 1024} KiB)", flush=True)


def hub(directory):
    listen = f"127.0.0.1:{hub_port}"
    log = open(f"{directory}.log", "a")
    child = subprocess.Popen([ATOLL, "serve", "--listen", listen, "--data-dir", directory, "--store", f"redb:{directory}/store"], stderr=log, stdout=log)
    children.append(child)
    token = None
    while True:
        try:
            text = open(f"{directory}/kubeconfig").read()
            token = [line.split("token:")[1].strip().strip('"') for line in text.splitlines() if "token:" in line][0]
            server = Server(f"https://{listen}", token)
            if server.ask("GET", "/readyz")[0] == 200:
                return child, server
        except (OSError, IndexError):
            pass
        assert child.poll() is None, "the hub ended"
        time.sleep(0.2)


def end(child):
    child.terminate()
    child.wait()


def known(server):
    text = server.must("GET", "/manage/v1alpha1/facets?by=resource&query.kinds=Pod&limit=10")
    return sum(int(one["count"]) for one in json.loads(text)["counts"])


hub_port = port()
base = tempfile.mkdtemp(prefix="rivals-")
try:
    child, server = hub(f"{base}/hub")
    for name in MEMBERS:
        server.must("POST", "/apis/atoll.io/v1alpha1/instances", {"kind": "Instance", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": name}, "spec": {"type": "Hosted"}})
    for at, name in enumerate(MEMBERS):
        while server.ask("GET", f"/instances/{name}/api/v1/namespaces")[0] != 200:
            time.sleep(0.2)
        for space in range(50):
            server.must("POST", f"/instances/{name}/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": f"team-{space}"}})
        each = PODS // len(MEMBERS)
        for start in range(0, each, 1000):
            pieces = []
            for number in range(start, min(start + 1000, each)):
                one = pod(at, number)
                meta = one["metadata"]
                pieces.append({"key": f"pods./{meta['namespace']}/{meta['name']}", "object": json.dumps(one)})
            server.must("POST", f"/manage/v1alpha1/instances/{name}:restore", {"pieces": pieces})
        print("filled", name, flush=True)
    token = server.token
    end(child)
    for file in os.listdir(f"{base}/hub"):
        if file.startswith("index.sqlite"):
            os.remove(f"{base}/hub/{file}")
    print(f"--- Atoll, SQLite, {PODS} pods of {len(MEMBERS)} members", flush=True)
    started = time.perf_counter()
    child, server = hub(f"{base}/hub")
    ready = time.perf_counter()
    first = None
    while (count := known(server)) < PODS:
        first = first or (time.perf_counter(), count)
        time.sleep(0.1)
    took = time.perf_counter() - ready
    print(f"all found {took:.1f} s after the hub answered ({time.perf_counter() - started:.1f} s after its start): at least {PODS / took:.0f} objects/s; hub has {resident(child.pid) // 1024} MiB", flush=True)
    pedia = "/apis/clusterpedia.io/v1beta1/resources"
    every = "clusters=" + "%2C".join(MEMBERS)
    measure("pods of a namespace", server, lambda n: f"{pedia}/api/v1/namespaces/team-{n % 50}/pods?{every}", 30)
    measure("by label", server, lambda n: f"{pedia}/api/v1/pods?{every}&labelSelector=app%3Dapp-{n % 500}", 100)
    measure("one object", server, lambda n: f"{pedia}/clusters/m3/api/v1/namespaces/team-{n % 50}/pods/web-{n // 10}-{n}", 200)
    measure("10,000 pods of one member", server, lambda n: f"{pedia}/clusters/m3/api/v1/pods", 5)
    measure("first page of 500 of all", server, lambda n: f"{pedia}/api/v1/pods?{every}&limit=500", 30)

    if SEARCH == "-":
        sys.exit()
    print("--- karmada-search", flush=True)
    up = subprocess.run([f"{ROOT}/tests/peers/up", f"{base}/kcp"], capture_output=True, text=True, check=True)
    kcp = f"{base}/kcp"
    ports = {name: open(f"{kcp}/ports/{name}").read().strip() for name in ("etcd", "kube-apiserver")}
    plane = Server(f"https://127.0.0.1:{ports['kube-apiserver']}", open(f"{kcp}/token").read().strip())
    for directory, _, files in os.walk(f"{CACHE}/src/karmada/charts/karmada/_crds/bases"):
        for file in files:
            subprocess.run([f"{CACHE}/bin/kubectl", "--kubeconfig", f"{kcp}/kubeconfig", "create", "-f", f"{directory}/{file}"], check=True, stdout=subprocess.DEVNULL)
    for space in ("karmada-system", "karmada-cluster"):
        plane.must("POST", "/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": space}})

    def aggregated(name, program, group):
        own = port()
        log = open(f"{base}/{name}.log", "w")
        config = f"{kcp}/kubeconfig"
        process = subprocess.Popen([program, f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                                    f"--etcd-servers=http://127.0.0.1:{ports['etcd']}", f"--secure-port={own}", "--bind-address=127.0.0.1",
                                    f"--tls-cert-file={kcp}/pki/server.crt", f"--tls-private-key-file={kcp}/pki/server.key"], stdout=log, stderr=log)
        children.append(process)
        plane.must("POST", "/api/v1/namespaces/karmada-system/services", {"kind": "Service", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
        plane.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": {"name": f"v1alpha1.{group}"},
                   "spec": {"group": group, "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 10, "insecureSkipTLSVerify": True,
                            "service": {"name": name, "namespace": "karmada-system", "port": own}}})
        while plane.ask("GET", f"/apis/{group}/v1alpha1")[0] != 200:
            assert process.poll() is None, f"{name} ended: see {base}/{name}.log"
            time.sleep(0.2)
        return process

    aggregated("karmada-aggregated-apiserver", AGGREGATED, "cluster.karmada.io")
    process = aggregated("karmada-search", SEARCH, "search.karmada.io")
    for name in MEMBERS:
        plane.must("POST", "/api/v1/namespaces/karmada-cluster/secrets", {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "stringData": {"token": token}})
        reference = {"namespace": "karmada-cluster", "name": name}
        plane.must("POST", "/apis/cluster.karmada.io/v1alpha1/clusters", {"kind": "Cluster", "apiVersion": "cluster.karmada.io/v1alpha1", "metadata": {"name": name},
                   "spec": {"syncMode": "Push", "apiEndpoint": f"https://127.0.0.1:{hub_port}/instances/{name}", "secretRef": reference, "insecureSkipTLSVerification": True}})
        ready = [{"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}]
        enabled = [{"groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod"}]}]
        plane.must("PATCH", f"/apis/cluster.karmada.io/v1alpha1/clusters/{name}/status", {"status": {"conditions": ready, "apiEnablements": enabled, "kubernetesVersion": "v1.35.0"}}, "application/merge-patch+json")
    before = resident(process.pid)
    started = time.perf_counter()
    plane.must("POST", "/apis/search.karmada.io/v1alpha1/resourceregistries", {"kind": "ResourceRegistry", "apiVersion": "search.karmada.io/v1alpha1", "metadata": {"name": "pods"},
               "spec": {"targetCluster": {"clusterNames": MEMBERS}, "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}]}})
    cache = "/apis/search.karmada.io/v1alpha1/search/cache"
    proxy = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
    count = 0
    while time.perf_counter() - started < 400:
        code, text = plane.ask("GET", f"{cache}/api/v1/namespaces/team-49/pods")
        count = len(json.loads(text).get("items") or []) if code == 200 else 0
        if count >= PODS // 50:
            break
        time.sleep(0.5)
    took = time.perf_counter() - started
    grown = resident(process.pid) - before
    print(f"all found {took:.1f} s after it was told to: at least {PODS / took:.0f} objects/s; memory grew by {grown // 1024} MiB, {grown / PODS:.2f} KiB for each pod ({count} in the last namespace)", flush=True)
    for what, way in (("cache", cache), ("proxy", proxy)):
        try:
            measure(f"{what}: pods of a namespace", plane, lambda n: f"{way}/api/v1/namespaces/team-{n % 50}/pods", 30)
            measure(f"{what}: by label", plane, lambda n: f"{way}/api/v1/pods?labelSelector=app%3Dapp-{n % 500}", 20)
            measure(f"{what}: first page of 500 of all", plane, lambda n: f"{way}/api/v1/pods?limit=500", 20)
        except AssertionError as error:
            print(what, "does not answer:", str(error)[:300], flush=True)
finally:
    for child in reversed(children):
        if child.poll() is None:
            end(child)
    subprocess.run([f"{ROOT}/tests/peers/down", f"{base}/kcp"], capture_output=True)
    shutil.rmtree(base, ignore_errors=True)
