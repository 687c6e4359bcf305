"""Stored runs: after an interruption, the same command resumes."""

import json

from joblib import Parallel, delayed
from record import summary


class Runs:
    """Finished runs, stored as lines of JSON.

    `run` takes the name of the images, a setting, a seed and a key, and returns the key
    and a dict of results. `prepare`, if given, takes images, a setting and a seed, and
    computes common inputs of the runs in this process. `n_jobs` new runs are done at a
    time.
    """

    def __init__(self, path, run, prepare=None, n_jobs=2):
        self.path = path
        self.run = run
        self.prepare = prepare
        self.n_jobs = n_jobs
        self.kept = {}
        if path.exists():
            for line in path.read_text().splitlines():
                run = json.loads(line)
                self.kept[run.pop("key")] = run

    def __call__(self, images, settings, seeds):
        """Return the runs of each setting, one per seed."""
        wanted = [(one, seed) for one in settings for seed in seeds]
        keys = [json.dumps([images.name, one, seed]) for one, seed in wanted]
        missing = [i for i, key in enumerate(keys) if key not in self.kept]
        for i in missing if self.prepare else ():
            self.prepare(images, *wanted[i])
        results = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(
            delayed(self.run)(images.name, *wanted[i], keys[i]) for i in missing
        )
        for key, run in results:
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, **run}) + "\n")
            self.kept[key] = run
            print(key, run, flush=True)
        by_setting = iter([self.kept[key] for key in keys])
        return [[next(by_setting) for _ in seeds] for _ in settings]


def summaries(results):
    """Summarise the runs of one setting, over its seeds."""
    return {
        name: summary(one[name] for one in results)
        for name in results[0]
        if results[0][name] is not None
    }
