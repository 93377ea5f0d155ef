#!/usr/bin/env python3
"""How fast graphs generate in onnxruntime-genai's loop: for bench/genai.sh, in the venv of `tools/setup.sh peers`.

usage: race_genai.py RUNS LENGTHS DIR OTHER      two of them, side by side; LENGTHS of prompts: "512 1536"
       race_genai.py --alone DIR LENGTH TOKENS   tokens per second after a prompt

Each run starts a process for either, and has them read prompts and make tokens in turns of a few, so that whatever else
the machine does falls on both; who begins changes from turn to turn. Prints medians over the runs: seconds to load,
tokens per second of reading a prompt of each length and of what follows, the most memory of the process in MB; then the
ratio of the medians, and the median of the ratios of each run.
"""

import contextlib
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

TURNS, STEPS = 12, 4  # of tokens, after each prompt
PAUSE = 0.06  # seconds; after a step its threads spin for some milliseconds, in the other's time


class Worker:
    """The process of one directory. It takes one request a line, and answers each with a line of JSON."""

    def __init__(self, folder):
        command = [sys.executable, __file__, "--serve", folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load = self._answer()

    def ask(self, request, *arguments):
        time.sleep(PAUSE)
        print(request, *arguments, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"race_genai: a process ended early: {self._process.args}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()


def seconds(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def read_prompt(model, length, num_tokens):
    """A generator that has made the first token of as many, and the seconds that took."""
    import onnxruntime_genai

    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=length + num_tokens, do_sample=False)
    generator = onnxruntime_genai.Generator(model, parameters)
    numbers = random.Random(length)
    ids = [numbers.randrange(5, 900) for _ in range(length)]
    return generator, seconds(lambda: (generator.append_tokens(ids), generator.generate_next_token()))


def make_tokens(generator, count):
    """The seconds that so many more take."""
    before = len(generator.get_sequence(0))
    taken = seconds(lambda: [generator.generate_next_token() for _ in range(count)])
    assert len(generator.get_sequence(0)) == before + count, "it ended early"
    return taken


def alone(folder, length, num_tokens):
    import onnxruntime_genai

    generator, _ = read_prompt(onnxruntime_genai.Model(folder), int(length), int(num_tokens))
    count = int(num_tokens) - 1
    print(f"{count / make_tokens(generator, count):.2f}")


def serve(folder):
    """What a Worker's process does: says seconds to load, then answers `prompt LENGTH`, `turn` and `memory`."""
    import onnxruntime_genai

    begun = time.perf_counter()
    model = onnxruntime_genai.Model(folder)
    print(time.perf_counter() - begun, flush=True)
    generator = None
    for line in sys.stdin:
        request, *arguments = line.split()
        if request == "prompt":
            length = int(arguments[0])
            generator = None  # its cache goes first
            generator, taken = read_prompt(model, length, 1 + TURNS * (STEPS + 1))
            answer = length / taken
        elif request == "turn":
            make_tokens(generator, 1)  # after the pause: its threads have to be woken
            answer = STEPS / make_tokens(generator, STEPS)
        else:
            answer = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
        print(json.dumps(answer), flush=True)


def race(folders, lengths):
    """One run: of each folder, its figures by name."""
    results = {folder: {} for folder in folders}
    with contextlib.ExitStack() as stack:
        workers = {folder: stack.enter_context(Worker(folder)) for folder in folders}
        for folder, worker in workers.items():
            results[folder]["load"] = worker.load
        order = list(folders)
        for length in lengths:
            for folder in order:
                results[folder][f"prefill {length}"] = workers[folder].ask("prompt", length)
            turns = {folder: [] for folder in folders}
            for _ in range(TURNS):
                order.reverse()
                for folder in order:
                    turns[folder].append(workers[folder].ask("turn"))
            for folder in folders:
                results[folder][f"decode {length}"] = statistics.median(turns[folder])
            order.reverse()
        for folder, worker in workers.items():
            results[folder]["memory"] = worker.ask("memory")
    return results


def main(runs, lengths, *folders):
    results = []
    for run in range(int(runs)):
        results.append(race(folders if run % 2 == 0 else folders[::-1], lengths.split()))
    ours, theirs = folders
    names = [pathlib.Path(folder).name for folder in folders]
    print(f"{names[0]} beside {names[1]}: medians of {runs} runs, their ratio, the median ratio of a run")
    for name in results[0][ours]:
        a, b = (statistics.median(run[folder][name] for run in results) for folder in folders)
        ratio = statistics.median(run[ours][name] / run[theirs][name] for run in results)
        print(f"  {name:<14} {a:9.2f} {b:9.2f} {a / b:7.3f} {ratio:7.3f}", flush=True)


if __name__ == "__main__":
    modes = {"--serve": serve, "--alone": alone}
    modes[sys.argv[1]](*sys.argv[2:]) if sys.argv[1] in modes else main(*sys.argv[1:])
