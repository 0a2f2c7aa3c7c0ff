"""Times of interleaved calls on the GPU: medians of events on the device, each after a buffer larger than the L2 cache was
overwritten, and with a spin kernel ahead, so that no host time is between the events."""
import random
import statistics

import torch

FLUSH_BYTES = 256 << 20
SPIN_CYCLES = 250000


class Timer:
    def __init__(self):
        self.junk = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self.order = random.Random(1)

    def times(self, calls, repeat, flush=True):
        """Median microseconds of each call, interleaved, in another order each time: a call of a few microseconds takes up to
        0.5 more or less by its place in a turn. Without `flush` the caches are as the call before left them."""
        events = {name: [] for name in calls}
        for call in calls.values():
            call()
        torch.cuda.synchronize()
        for _ in range(repeat):
            for name, call in self.order.sample(list(calls.items()), len(calls)):
                torch.cuda._sleep(SPIN_CYCLES)
                if flush:
                    self.junk.zero_()
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                call()
                end.record()
                events[name].append((begin, end))
            torch.cuda.synchronize()
        return {name: statistics.median(b.elapsed_time(e) for b, e in pairs) * 1000 for name, pairs in events.items()}

    def best(self, candidates):
        """The name of the fastest of pairs of name and call."""
        if len(candidates) < 2:
            return candidates[0][0]
        found = self.times(dict(candidates), 15)
        return min(found, key=found.get)
