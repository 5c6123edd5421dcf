"""Test of cede_client against a server with one node, run by cmd/cede with its address."""

import sys
import time
import urllib.error

from cede_client import ApiError, Client

client = Client(sys.argv[1])

assert client.readyz() is not None
nodes = client.nodes_list()
assert len(nodes) == 1, nodes

job = {"ID": "web", "Priority": 40, "TaskGroups": [{"Name": "main", "Count": 2, "Resources": {"cpu": 10}}]}
registered = client.jobs_register({"Job": job}, idempotency_key="web-1")
again = client.jobs_register({"Job": job}, idempotency_key="web-1")
assert again["EvalID"] == registered["EvalID"], "the key was not sent"
assert client.jobs_register({"Job": job})["EvalID"] != registered["EvalID"]

deadline = time.monotonic() + 60
while len(allocs := client.job_allocations("web")) < 2:
    assert time.monotonic() < deadline, allocs
    client.jobs_list(index=client.index, wait="1s")
assert {a["Name"] for a in allocs} == {"web.main[0]", "web.main[1]"}, allocs
assert client.allocation_get(allocs[0]["ID"])["JobID"] == "web"
assert client.job_get("web")["Priority"] == 40
assert [j["ID"] for j in client.jobs_list(prefix="we")] == ["web"]
assert client.jobs_list(prefix="nothing") == []

# Names are quoted, and errors are the server's.
for name in ("no/such job?", "ünknown"):
    try:
        client.job_get(name)
    except ApiError as error:
        assert error.status == 404 and error.code and name in error.message, (error.status, str(error))
    else:
        raise AssertionError("an unknown job was found")
try:
    client.jobs_register({"Job": {"ID": "bad", "TaskGroups": [{"Name": "g", "Count": -1}]}})
except ApiError as error:
    assert error.status == 400 and error.code == "invalid" and "Count: -1" in error.message, (error.status, error.code)
else:
    raise AssertionError("an invalid job was registered")
try:
    Client("http://127.0.0.1:1", timeout=5).jobs_list()
except urllib.error.URLError:
    pass
else:
    raise AssertionError("no server answered")

# A namespace of the client applies to calls without one.
client.namespace_register({"Name": "shop"})
shop = Client(sys.argv[1], namespace="shop")
assert shop.jobs_list() == [] and [j["ID"] for j in shop.jobs_list(namespace="default")] == ["web"]

# Bytes and streams.
assert len(client.snapshot_save()) > 100
events = client.event_stream(topic="Job", index=1)
assert next(events)["Index"] > 0
events.close()

client.job_stop("web", purge=True)
assert client.jobs_list() == []
print("ok")
