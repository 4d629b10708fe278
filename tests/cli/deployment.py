"""A deployment of several servers, which the program tests/programs/deployment starts."""
import os
import subprocess


class Deployment:
    """A Cluster, a master with Sentinels, or a ZooKeeper; url is "" if that cannot be started here."""

    def __init__(self, holdfast, kind):
        program = os.path.join(os.path.dirname(holdfast), "tests/programs/deployment")
        self.process = subprocess.Popen([program, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith(("redis", "zk")):
            assert self.process.wait() == 77, "the deployment was not started"
            self.url = ""

    def order(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", word

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
