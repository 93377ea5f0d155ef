#!/usr/bin/env python3
"""The census: what `tranship export model.pt2 --to onnx` makes of Transformers' classes, and the table of it.

  census.py draw COUNT > tests/census/classes.txt      the list, drawn by seed: made once, before the first run
  census.py sample COUNT RESULTS > tests/census/sample.txt   those of CI, drawn by seed from the captured ones
  census.py run [--classes FILE] [--only TYPE ...] [--work DIR] [--jobs N] [--table docs/coverage.md]

For each class: a tiny model with hash weights is captured by Transformers' own exporter (DynamoExporter) into a
`.pt2`. The command line exports that to ONNX, which ONNX Runtime runs on two sizes of inputs, and to `.pt2` again,
which PyTorch runs. Both are compared with what PyTorch computes from the captured `.pt2`; where the model itself
computes something else, that is noted. With --strict the exit status is 1 unless all match.
Needs Transformers 5.23.0, torch 2.13.0, onnxruntime; TRANSHIP_CLI is the command line.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLASSES = ROOT / "tests/census/classes.txt"
SAMPLE_SEED = 25
MAX_PARAMETERS = 30e6
TOLERANCE = 1e-4  # of the largest number of an output; integers and booleans are equal
# How far a class came: what failed is the stage that it did not leave.
STAGES = ("model", "capture", "export", "run", "compare", "match")
SECONDS = 240  # of a class: to capture it, and again to check it
MEMORY = 8 << 30


# ---- one class, in a process of its own

def make_model(model_type, name):
    """A tiny model with hash weights, that runs."""
    import torch
    import transformers

    import census_models
    import hash_weights

    errors = {}
    for config in census_models.tiny_configs(model_type, name):
        try:
            if isinstance(config, Exception):
                raise config
            with torch.device("meta"):
                size = sum(p.numel() for p in getattr(transformers, name)(config).parameters())
            if size > MAX_PARAMETERS:
                raise ValueError(f"{size / 1e6:.0f} million parameters are not tiny")
            torch.manual_seed(0)
            model = getattr(transformers, name)(config).eval()
            hash_weights.fill(model)
            with torch.no_grad():
                model(**census_models.sample_inputs(model, 2, 12))
            return model
        except Exception as error:  # noqa: BLE001: any of them leads to the next configuration
            errors[short(error)] = None
    raise RuntimeError("; ".join(errors))


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def open_axes(inputs):
    """All axes of all inputs, but of images only the batch: height and width of a tiny model are mostly fixed."""
    import torch

    return {name: {axis: torch.export.Dim.AUTO for axis in ((0,) if name == "pixel_values" else range(value.ndim))}
            for name, value in inputs.items()}


def capture(model, inputs, folder):
    """model.pt2 in `folder`, with axes that are open if PyTorch can, else fixed. Says which."""
    from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

    error = None
    for config in (DynamoConfig(dynamic=True, dynamic_shapes=open_axes(inputs)), DynamoConfig(dynamic=False)):
        try:
            DynamoExporter().export(model, dict(inputs), config=config).save_pretrained(folder)
            return config.dynamic
        except Exception as caught:  # noqa: BLE001: what PyTorch cannot capture is counted, whatever it says
            error = error or caught
    raise error


def load(folder):
    """model.pt2 of `folder` as PyTorch runs it."""
    import torch
    from torch.export.pt2_archive._package import load_pt2
    from transformers.exporters.metadata import register_treespec_types

    metadata = json.loads((folder / "export.json").read_text())["components"]["model"]["metadata"]
    for spec in ("in_spec", "out_spec"):
        register_treespec_types(metadata[spec])
    torch.manual_seed(0)
    return load_pt2(folder / "model.pt2").exported_programs["model"].module()


def flat(output):
    """The tensors of a model's output, in the order of its tree."""
    import torch
    from transformers.exporters.utils import get_leaf_tensors

    tensors = [t for t in get_leaf_tensors(output).values() if isinstance(t, torch.Tensor)]
    return [t.detach().numpy() for t in tensors]


def difference(actual, expected):
    """The largest difference as a part of the largest number; infinity where kinds or places of infinities differ."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    if actual.dtype != expected.dtype:
        raise ValueError(f"dtype {actual.dtype}, expected {expected.dtype}")
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)):
        return float("inf")
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = np.abs(expected[finite]).max()
    return float(np.abs(actual[finite].astype(np.float64) - expected[finite]).max() / (scale or 1.0))


def worst(actual, expected):
    """The largest difference of all outputs. -> an error where they cannot be compared, or differ by too much."""
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs, expected {len(expected)}")
    found = max([0.0] + [difference(a, e) for a, e in zip(actual, expected)])
    if found > TOLERANCE:
        raise ValueError(f"differs by {found:.1e} of the largest number")
    return found


def run_onnx(folder, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    values = {value.name: inputs[value.name.removeprefix("input.")] for value in session.get_inputs()}
    return session.run(None, values)


def run_pt2(module, inputs):
    import torch

    with torch.no_grad():
        return flat(module(**{name: torch.from_numpy(value.copy()) for name, value in inputs.items()}))


def make_case(model_type, name, folder, result):
    """What the comparison needs, in `folder`: model.pt2, and inputs and expected outputs of two sizes."""
    import numpy as np
    import torch
    import transformers

    import census_models

    transformers.logging.set_verbosity_error()
    model = make_model(model_type, name)
    result["stage"] = "capture"
    dynamic = capture(model, census_models.sample_inputs(model, 2, 12), folder)
    program = load(folder)
    for seed, (batch, length) in enumerate([(2, 12)] + ([(3, 17)] if dynamic else [])):
        inputs = {k: v.numpy() for k, v in census_models.sample_inputs(model, batch, length, seed).items()}
        try:
            expected = run_pt2(program, inputs)
        except Exception:  # noqa: BLE001: the program's own bounds are what other sizes may break
            if seed == 0:
                raise
            continue
        result["eager"] = result.get("eager") or against_eager(model, inputs, expected)
        np.savez(folder / f"inputs-{seed}.npz", **inputs)
        np.savez(folder / f"expected-{seed}.npz", *expected)
    result["dynamic"] = dynamic


def against_eager(model, inputs, captured):
    """How the captured program differs from the model; None where it does not."""
    import torch

    with torch.no_grad():
        eager = flat(model(**{name: torch.from_numpy(value.copy()) for name, value in inputs.items()}))
    try:
        worst(captured, eager)
    except ValueError as error:
        return str(error)
    return None


def call_cli(source, form, folder):
    command = [os.environ["TRANSHIP_CLI"], "export", source / "model.pt2", "--to", form, "--quiet", "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().removeprefix("error: ") or f"exit status {done.returncode}")


def cases(captured):
    import numpy as np

    for path in sorted(captured.glob("inputs-*.npz")):
        expected = list(np.load(captured / path.name.replace("inputs", "expected")).values())
        yield dict(np.load(path)), expected


def check_onnx(captured, folder, result):
    """Export, run, compare: each stage says how far it came."""
    result["stage"] = "export"
    call_cli(captured, "onnx", folder)
    found = 0.0
    for inputs, expected in cases(captured):
        result["stage"] = "run"
        actual = run_onnx(folder, inputs)
        result["stage"] = "compare"
        found = max(found, worst(actual, expected))
    result.update(stage="match", difference=found)


def check_again(captured, folder, result):
    """`.pt2` from `.pt2`, which PyTorch loads and runs."""
    try:
        call_cli(captured, "dynamo", folder)
        module = load(folder)
        result["again"] = max(worst(run_pt2(module, inputs), expected) for inputs, expected in cases(captured))
    except Exception as error:  # noqa: BLE001: the reason goes into the table
        result["again_reason"] = short(error)


def one(entry, folder, log):
    """The result of a class: how far it came, and why not further. A capture that is there is not made again."""
    import torch

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    captured, record = folder / "captured", folder / "captured.json"
    result = dict(zip(("kind", "model_type", "class"), entry), stage="model")
    log.write_text(json.dumps(result))
    try:
        if not record.exists():
            make_case(*entry[1:], captured, result)
            record.write_text(json.dumps(result))
        result = json.loads(record.read_text())
        if "dynamic" in result and os.environ.get("TRANSHIP_CLI"):
            log.write_text(json.dumps(result))
            check_onnx(captured, folder / "onnx", result)
    except Exception as error:  # noqa: BLE001: the reason goes into the table
        result["reason"] = short(error)
        if result["stage"] in ("model", "capture"):
            record.write_text(json.dumps(result))
    if result["stage"] in STAGES[2:] and os.environ.get("TRANSHIP_CLI"):
        check_again(captured, folder / "again", result)
    log.write_text(json.dumps(result))


# ---- all of them

def read_classes(path):
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    return [tuple(line) for line in lines if line]


def one_and_exit(*arguments):
    """Nothing of the process that forked is to be wound up here."""
    one(*arguments)
    os._exit(0)


def run_one(entry, work, keep):
    """One class in a process of its own, which may die or take too long."""
    folder, log = work / entry[1], work / f"{entry[1]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    started = time.monotonic()
    process = multiprocessing.get_context("fork").Process(target=one_and_exit, args=(entry, folder, log))
    process.start()
    process.join(2 * SECONDS)
    late = process.is_alive()
    if late:
        process.kill()
        process.join()
    result = json.loads(log.read_text())
    if late or process.exitcode != 0:
        result["reason"] = f"took more than {2 * SECONDS} s" if late else f"the process ended with {process.exitcode}"
    result["seconds"] = round(time.monotonic() - started, 1)
    log.write_text(json.dumps(result, indent=1))
    for made in ("onnx", "again") if keep else ("",):
        shutil.rmtree(folder / made, ignore_errors=True)
    return result


def captured(results):
    return [r for r in results if STAGES.index(r["stage"]) > STAGES.index("capture")]


def share(part, whole):
    return f"{len(part)} of {len(whole)} ({100 * len(part) / max(1, len(whole)):.1f} %)"


def reason(result, key="reason"):
    return result.get(key, "").replace("|", "\\|")


def cell(result, key):
    return f"{result[key]:.0e}" if key in result else "no"


def table(results):
    """docs/coverage.md."""
    reached = captured(results)
    matched = [r for r in reached if r["stage"] == "match"]
    again = [r for r in reached if "again" in r]
    lines = ["# Coverage: what of Transformers goes through a captured `.pt2`", "",
             "Written by `tools/census.py run`: tiny models of Transformers 5.23, captured by its own exporter in",
             "PyTorch 2.13, exported by `tranship export model.pt2 --to onnx`, run by ONNX Runtime and compared with",
             f"what PyTorch computes from the same `.pt2` (tolerance {TOLERANCE:.0e} of an output's largest number; a",
             "second size of inputs where axes are open). Models of text and other kinds of input get the text alone.", "",
             "| | classes |", "|---|---|",
             f"| drawn by seed before the first run (`tests/census/classes.txt`) | {len(results)} |",
             f"| no tiny model that runs in PyTorch | {sum(r['stage'] == 'model' for r in results)} |",
             f"| PyTorch cannot capture it | {sum(r['stage'] == 'capture' for r in results)} |",
             f"| captured | {len(reached)} |",
             f"| **ONNX matches** | **{share(matched, reached)}** |",
             f"| `.pt2` written from the `.pt2` matches in PyTorch | {share(again, reached)} |", "",
             "| kind | classes | captured | ONNX matches | `.pt2` again matches |", "|---|---|---|---|---|"]
    for kind in sorted({r["kind"] for r in results}):
        own = [r for r in results if r["kind"] == kind]
        counts = len(own), len(captured(own)), sum(r in matched for r in own), sum(r in again for r in own)
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} |")

    def rows(title, chosen, columns):
        if not chosen:
            return
        lines.extend(["", f"## {title}", "", f"| class | model_type | {' | '.join(columns)} |"])
        lines.append("|---" * (2 + len(columns)) + "|")
        for result in chosen:
            cells = [result["class"], result["model_type"], *(column(result) for column in columns.values())]
            lines.append(f"| {' | '.join(cells)} |")

    rows("Captured, and the ONNX fails", [r for r in reached if r not in matched],
         {"where": lambda r: r["stage"], "reason": reason})
    rows("Captured, and the `.pt2` written again fails", [r for r in reached if r not in again],
         {"reason": lambda r: reason(r, "again_reason")})
    rows("The capture differs from the model: PyTorch's or Transformers' doing",
         [r for r in reached if r.get("eager")], {"how": lambda r: reason(r, "eager")})
    rows("Match", matched, {"ONNX": lambda r: cell(r, "difference"), "`.pt2` again": lambda r: cell(r, "again"),
                            "axes": lambda r: "open" if r["dynamic"] else "fixed"})
    rows("Not captured by PyTorch", [r for r in results if r["stage"] == "capture"], {"reason": reason})
    rows("No tiny model made", [r for r in results if r["stage"] == "model"], {"reason": reason})
    return "\n".join(lines) + "\n"


def preload():
    """What each class's process needs is loaded once, before they fork."""
    import onnxruntime  # noqa: F401
    import torch
    import transformers
    from transformers.exporters import exporter_dynamo  # noqa: F401

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)


def run(arguments):
    entries = [e for e in read_classes(arguments.classes) if not arguments.only or e[1] in arguments.only]
    arguments.work.mkdir(parents=True, exist_ok=True)
    preload()
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda e: run_one(e, arguments.work, arguments.keep), entries):
            note = result.get("reason") or result.get("again_reason") or result.get("eager") or ""
            print(f"{result['stage']:8} {result['class']:45} {result['seconds']:6} s  {note[:300]}", flush=True)
            results.append(result)
    reached = captured(results)
    matched = [r for r in reached if r["stage"] == "match"]
    print(f"{len(results)} classes, ONNX matches for {share(matched, reached)} captured, .pt2 again for",
          share([r for r in reached if "again" in r], reached))
    if arguments.table:
        arguments.table.write_text(table(results))
    return 0 if not arguments.strict or all("again" in r and r in matched for r in results) else 1


def sample(count, folder):
    """`count` of the captured classes, as many of each kind as its part of all, at least two."""
    results = captured([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])
    generator = random.Random(SAMPLE_SEED)
    generator.shuffle(results)
    chosen = []
    for kind in sorted({r["kind"] for r in results}):
        own = [r for r in results if r["kind"] == kind]
        chosen += own[:max(2, round(count * len(own) / len(results)))]
    return sorted((r["kind"], r["model_type"], r["class"]) for r in chosen)[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("draw").add_argument("count", type=int)
    sampler = commands.add_parser("sample")
    sampler.add_argument("count", type=int)
    sampler.add_argument("work", type=pathlib.Path)
    runner = commands.add_parser("run")
    runner.add_argument("--classes", type=pathlib.Path, default=CLASSES)
    runner.add_argument("--only", nargs="*", default=[], metavar="MODEL_TYPE")
    runner.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/census"))
    runner.add_argument("--jobs", type=int, default=2)
    runner.add_argument("--keep", action="store_true", help="keep captured files, and do not make again those kept")
    runner.add_argument("--strict", action="store_true", help="exit status 1 unless every class matches, both ways")
    runner.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        return run(arguments)
    if arguments.command == "draw":
        import census_models
        print(f"# kind, model_type, class: tools/census.py draw {arguments.count}, with Transformers 5.23.0")
        entries = census_models.draw(arguments.count)
    else:
        print(f"# kind, model_type, class: tools/census.py sample {arguments.count}, of the captured ones")
        entries = sample(arguments.count, arguments.work)
    for entry in entries:
        print(*entry)
    return 0


if __name__ == "__main__":
    sys.exit(main())
