"""Deployments of several Redis servers: a Cluster of three masters, and a master with a replica."""
import random
import socket

from . import processes
from .servers import RedisServer, wait_for

MASTERS = 3
SLOTS = 16384
BUS_OFFSET = 10000  # the port of a node's bus, above the node's own
# Below the ports that the kernel gives to connections, so that the bus's port stays free as well.
BUS_PORTS = (11000, 22000)


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def find_free_bus_port():
    for _ in range(1000):
        port = random.randrange(*BUS_PORTS)
        if is_free(port) and is_free(port + BUS_OFFSET):
            return port
    raise processes.PeerError("no free port was found for a node of a Cluster")


def add_counts(parts):
    """The counts of several servers as those of one."""
    commands = {}
    for part in parts:
        for name, (calls, usec) in part["commands"].items():
            before = commands.get(name, (0, 0))
            commands[name] = (before[0] + calls, before[1] + usec)
    return {"commands": commands,
            **{key: sum(part[key] for part in parts) for key in ("cpu", "bytes_in", "bytes_out")}}


class Deployment:
    """Several servers that are pinned, counted and ended together."""

    def __init__(self, cores, log, directory):
        self.cores, self.log, self.directory = cores, log, directory
        self.nodes = []

    def add_node(self, *options, port=None):
        node = RedisServer(self.cores, self.log, self.directory, options, port)
        self.nodes.append(node)
        return node

    def hosts(self):
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def begin(self):
        for node in self.nodes:
            node.begin()

    def read_counts(self):
        return add_counts([node.read_counts() for node in self.nodes])

    def pin(self, cores):
        for node in self.nodes:
            node.pin(cores)

    def end(self):
        for node in self.nodes:
            node.end()
        self.nodes = []


class Cluster(Deployment):
    """Three masters without replicas, each with a third of the slots."""

    def start(self):
        for _ in range(MASTERS):
            port = find_free_bus_port()
            self.add_node("--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{port}.conf", port=port)
        self.share_slots()
        for node in self.nodes[1:]:
            self.nodes[0].connection.call("CLUSTER", "MEET", "127.0.0.1", node.port)
        wait_for("the Cluster", lambda: all(self.is_complete(node) for node in self.nodes))

    @property
    def url(self):
        return "redis+cluster://" + self.hosts()

    def share_slots(self):
        for number, node in enumerate(self.nodes):
            slots = range(SLOTS * number // MASTERS, SLOTS * (number + 1) // MASTERS)
            node.connection.call("CLUSTER", "ADDSLOTS", *slots)
            node.connection.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)

    @staticmethod
    def is_complete(node):
        lines = node.connection.call("CLUSTER", "INFO").splitlines()
        return "cluster_state:ok" in lines and f"cluster_known_nodes:{MASTERS}" in lines


class Replicated(Deployment):
    """A master and one replica."""

    def start(self):
        master = self.add_node("--repl-diskless-sync-delay", "0")
        replica = self.add_node("--replicaof", "127.0.0.1", str(master.port))
        wait_for("the replica", lambda: replica.info("replication").get("master_link_status") == "up" and
                 master.info("replication").get("connected_slaves") == "1")

    @property
    def url(self):
        return "redis://" + self.hosts()


KINDS = {"cluster": Cluster, "replica": Replicated}
