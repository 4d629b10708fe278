"""Tests what decides whether a run was disturbed and is repeated."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness import load  # noqa: E402

STAT = """cpu  300 0 300 3000 30 0 0 0 0 0
cpu0 100 0 100 1000 10 0 0 0 0 0
cpu1 200 0 200 2000 20 0 0 0 0 0
cpu10 1 1 1 500000 1 0 0 0 0 0
intr 1 2 3
"""


class FakeMeter:
    """A machine that is always quiet."""

    @staticmethod
    def share():
        return 0.0


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.quiet, load.SAMPLE_SECONDS = load.SAMPLE_SECONDS, 0.001

    def tearDown(self):
        load.SAMPLE_SECONDS = self.quiet

    def measure(self, shares, left_seconds=100):
        """The watch and its answer, if the runs have these foreign shares one after the other."""
        watch, runs = load.Watch(), iter(shares)
        watch.allow(left_seconds)
        return watch, watch.measure(1, lambda: {"foreign": next(runs)}, FakeMeter)

    def test_idle_time_is_that_of_the_named_cores(self):
        self.assertEqual(load.parse_idle(STAT, {1}), 20.2)
        self.assertEqual(load.parse_idle(STAT, {0, 1}), 30.3)

    def test_what_is_neither_idle_nor_ours_is_foreign(self):
        self.assertAlmostEqual(load.foreign_share(1, 1, 0.25, 0.5), 0.25)
        self.assertAlmostEqual(load.foreign_share(2, 2, 1, 2), 0.25)

    def test_rounding_never_makes_the_share_negative(self):
        self.assertEqual(load.foreign_share(1, 1, 0.51, 0.5), 0)

    def test_the_limit_allows_for_the_grain_of_the_clock(self):
        self.assertFalse(load.is_disturbed(0.065, 1))
        self.assertTrue(load.is_disturbed(0.08, 1))
        self.assertFalse(load.is_disturbed(0.08, 0.4))
        self.assertTrue(load.is_disturbed(0.12, 0.4))

    def test_a_quiet_run_is_not_repeated(self):
        watch, answer = self.measure([0.01])
        self.assertEqual((watch.repeats, watch.disturbed, answer["foreign"]), (0, 0, 0.01))

    def test_a_disturbed_run_is_repeated_until_it_is_quiet(self):
        watch, answer = self.measure([0.5, 0.3, 0.02])
        self.assertEqual((watch.repeats, watch.disturbed, answer["foreign"]), (2, 0, 0.02))

    def test_after_the_last_repeat_the_quietest_run_counts(self):
        watch, answer = self.measure([0.5, 0.2, 0.4, 0.3])
        self.assertEqual((watch.repeats, watch.disturbed, answer["foreign"]), (3, 1, 0.2))

    def test_without_time_left_nothing_is_repeated(self):
        watch, answer = self.measure([0.5, 0.01], left_seconds=0)
        self.assertEqual((watch.repeats, watch.disturbed, answer["foreign"]), (0, 1, 0.5))

    def test_repeats_use_up_the_time_that_is_left(self):
        watch, _ = self.measure([0.5, 0.01])
        self.assertLess(watch.left_seconds, 100)

    def test_the_result_says_how_much_was_disturbed(self):
        self.assertIn("no run was disturbed", load.describe({"runs": 9, "repeats": 0, "disturbed": 0}))
        text = load.describe({"runs": 9, "repeats": 4, "disturbed": 2})
        self.assertIn("of 9 runs, 2 were disturbed", text)
        self.assertIn("4 repeats", text)


if __name__ == "__main__":
    unittest.main()
