#!/usr/bin/env python3
"""The census: what `tranship export model.pt2 --to onnx` makes of Transformers' classes, and the table of it.

  census.py draw COUNT > tests/census/classes.txt      the list, drawn by seed: made once, before the first run
  census.py run [--classes FILE] [--only TYPE ...] [--work DIR] [--jobs N] [--table docs/coverage.md]

For each class: a tiny model with hash weights is captured by Transformers' own exporter (DynamoExporter) into a
`.pt2`, exported to ONNX by the command line, run by ONNX Runtime on two sizes of inputs, and compared with PyTorch.
Exit status 1 if a class of those given fails that is not listed in the table's file as failing.
Needs Transformers 5.23.0, torch 2.13.0, onnxruntime; TRANSHIP_CLI is the command line.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLASSES = ROOT / "tests/census/classes.txt"
MAX_PARAMETERS = 150e6
TOLERANCE = 1e-4  # of the largest number of an output; integers and booleans are equal
STAGES = ("model", "capture", "export", "run", "compare", "match")
SECONDS = 420


# ---- one class, in a process of its own

def make_model(model_type, name):
    """A tiny model with hash weights, that runs."""
    import torch
    import transformers

    import census_models
    import hash_weights

    errors = []
    for config in census_models.tiny_configs(model_type):
        try:
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
            errors.append(short(error))
    raise RuntimeError("; ".join(errors))


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def capture(model, inputs, folder):
    """model.pt2 in `folder`, with axes that are open if PyTorch can, else fixed. Says which."""
    from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

    error = None
    for dynamic in (True, False):
        try:
            DynamoExporter().export(model, dict(inputs), config=DynamoConfig(dynamic=dynamic)).save_pretrained(folder)
            return dynamic
        except Exception as caught:  # noqa: BLE001: what PyTorch cannot capture is counted, whatever it says
            error = error or caught
    raise error


def flat(output):
    """The tensors of a model's output, in the order of its tree."""
    import torch
    from transformers.exporters.utils import get_leaf_tensors

    return [tensor.detach() for tensor in get_leaf_tensors(output).values() if isinstance(tensor, torch.Tensor)]


def difference(actual, expected):
    """The largest difference as a part of the largest number; infinity where shapes, kinds or places of infinities do."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    if actual.dtype != expected.dtype:
        raise ValueError(f"dtype {actual.dtype}, expected {expected.dtype}")
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)) or not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = np.abs(expected[finite]).max()
    return float(np.abs(actual[finite].astype(np.float64) - expected[finite]).max() / (scale or 1.0))


def run_onnx(folder, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return session.run(None, {value.name: inputs[value.name.removeprefix("input.")] for value in session.get_inputs()})


def make_case(model_type, name, folder, result):
    """What the comparison needs, in `folder`: model.pt2, and inputs and expected outputs of two sizes."""
    import numpy as np
    import torch
    import transformers

    import census_models

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    model = make_model(model_type, name)
    result["stage"] = "capture"
    result["dynamic"] = capture(model, census_models.sample_inputs(model, 2, 12), folder)
    sizes = [(2, 12)] + ([(3, 17)] if result["dynamic"] else [])
    for seed, (batch, length) in enumerate(sizes):
        inputs = census_models.sample_inputs(model, batch, length, seed)
        if seed > 0 and not takes(folder, inputs):
            continue
        with torch.no_grad():
            expected = flat(model(**inputs))
        np.savez(folder / f"inputs-{seed}.npz", **{key: value.numpy() for key, value in inputs.items()})
        np.savez(folder / f"expected-{seed}.npz", *[value.numpy() for value in expected])


def takes(folder, inputs):
    """Whether PyTorch's own program takes other sizes than the captured ones."""
    import torch

    try:
        torch.export.load(str(folder / "model.pt2")).module()(**inputs)
        return True
    except Exception:  # noqa: BLE001: the program's own bounds
        return False


def check_case(captured, folder, result):
    """Export, run, compare: each stage says how far it came."""
    import numpy as np

    result["stage"] = "export"
    command = [os.environ["TRANSHIP_CLI"], "export", str(captured / "model.pt2"), "--to", "onnx", "--quiet",
               "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    result["difference"] = 0.0
    for path in sorted(captured.glob("inputs-*.npz")):
        expected = list(np.load(captured / path.name.replace("inputs", "expected")).values())
        result["stage"] = "run"
        actual = run_onnx(folder, np.load(path))
        result["stage"] = "compare"
        if len(actual) != len(expected):
            raise ValueError(f"{len(actual)} outputs, expected {len(expected)}")
        worst = max([0.0] + [difference(a, e) for a, e in zip(actual, expected)])
        result["difference"] = max(result["difference"], worst)
    if result["difference"] > TOLERANCE:
        raise ValueError(f"differs by {result['difference']:.1e} of the largest number")
    result["stage"] = "match"


def one(kind, model_type, name, folder):
    """The result of a class: how far it came, and why not further. A capture that is there is not made again."""
    captured, record = folder / "captured", folder / "captured.json"
    result = {"kind": kind, "model_type": model_type, "class": name, "stage": "model"}
    try:
        if not record.exists():
            try:
                make_case(model_type, name, captured, result)
            finally:
                record.write_text(json.dumps(result))
        result = json.loads(record.read_text())
        if "dynamic" not in result:
            raise RuntimeError(result.get("reason", "not captured"))
        if os.environ.get("TRANSHIP_CLI"):
            check_case(captured, folder / "onnx", result)
    except Exception as error:  # noqa: BLE001: the reason goes into the table
        result.setdefault("reason", short(error))
        if result["stage"] in ("model", "capture"):
            record.write_text(json.dumps(result))
    return result


# ---- all of them

def read_classes(path):
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    return [tuple(line) for line in lines if line]


def run_one(entry, work, keep):
    folder = work / entry[1]
    folder.mkdir(parents=True, exist_ok=True)
    log = work / f"{entry[1]}.json"
    command = ["nice", "-n", "10", sys.executable, __file__, "one", *entry, str(folder), str(log)]
    started = time.monotonic()
    try:
        subprocess.run(command, capture_output=True, check=False, timeout=2 * SECONDS)
        result = json.loads(log.read_text())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        result = {"kind": entry[0], "model_type": entry[1], "class": entry[2], "stage": "capture", "reason": short(error)}
    result["seconds"] = round(time.monotonic() - started, 1)
    log.write_text(json.dumps(result, indent=1))
    shutil.rmtree(folder / "onnx", ignore_errors=True)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def captured(results):
    return [r for r in results if STAGES.index(r["stage"]) > STAGES.index("capture")]


def table(results):
    """docs/coverage.md."""
    reached, matched = captured(results), [r for r in results if r["stage"] == "match"]
    kinds = sorted({r["kind"] for r in results})
    lines = ["# Coverage: what of Transformers goes through a captured `.pt2`", "",
             "Written by `tools/census.py run`, with tiny models of Transformers 5.23 captured by its own exporter in PyTorch "
             "2.13, exported by `tranship export model.pt2 --to onnx`, run by ONNX Runtime and compared with PyTorch (tolerance "
             f"{TOLERANCE:.0e} of an output's largest number; a second size of the inputs where the axes are open).", "",
             f"{len(results)} classes, drawn by seed before the first run (`tests/census/classes.txt`). PyTorch captures "
             f"{len(reached)} of them; of these **{len(matched)} match ({100 * len(matched) / max(1, len(reached)):.1f} %)**.", "",
             "| kind | classes | captured | match |", "|---|---|---|---|"]
    for kind in kinds:
        own = [r for r in results if r["kind"] == kind]
        lines.append(f"| {kind} | {len(own)} | {len(captured(own))} | {sum(r['stage'] == 'match' for r in own)} |")

    def rows(title, chosen, last):
        if not chosen:
            return
        lines.extend(["", f"## {title}", "", f"| class | model_type | {last[0]} |", "|---|---|---|"])
        lines.extend(f"| {r['class']} | {r['model_type']} | {last[1](r)} |" for r in chosen)

    def reason(result):
        return f"{result['stage']}: {result.get('reason', '')}".replace("|", "\\|")

    rows("Captured, and failing", [r for r in reached if r["stage"] != "match"], ("reason", reason))
    rows("Match", matched, ("largest difference, axes", lambda r: f"{r['difference']:.1e}, {'open' if r['dynamic'] else 'fixed'}"))
    rows("Not captured by PyTorch", [r for r in results if r["stage"] == "capture"], ("reason", reason))
    rows("No tiny model made", [r for r in results if r["stage"] == "model"], ("reason", reason))
    return "\n".join(lines) + "\n"


def run(arguments):
    entries = [e for e in read_classes(arguments.classes) if not arguments.only or e[1] in arguments.only]
    arguments.work.mkdir(parents=True, exist_ok=True)
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda e: run_one(e, arguments.work, arguments.keep), entries):
            print(f"{result['stage']:8} {result['class']:50} {result['seconds']:6} s  {result.get('reason', '')[:300]}", flush=True)
            results.append(result)
    matched, reached = sum(r["stage"] == "match" for r in results), len(captured(results))
    print(f"{len(results)} classes, {reached} captured, {matched} match ({100 * matched / max(1, reached):.1f} %)")
    if arguments.table:
        arguments.table.write_text(table(results))
    return 0 if not arguments.strict or matched == len(results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("draw").add_argument("count", type=int)
    runner = commands.add_parser("run")
    runner.add_argument("--classes", type=pathlib.Path, default=CLASSES)
    runner.add_argument("--only", nargs="*", default=[], metavar="MODEL_TYPE")
    runner.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/census"))
    runner.add_argument("--jobs", type=int, default=2)
    runner.add_argument("--keep", action="store_true", help="keep the captured files, and do not make again those that were kept")
    runner.add_argument("--strict", action="store_true", help="exit status 1 unless every class matches")
    runner.add_argument("--table", type=pathlib.Path)
    single = commands.add_parser("one")
    for name in ("kind", "model_type", "name"):
        single.add_argument(name)
    for name in ("folder", "log"):
        single.add_argument(name, type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "draw":
        import census_models
        print(f"# kind, model_type, class: tools/census.py draw {arguments.count}, with Transformers 5.23.0")
        for entry in census_models.draw(arguments.count):
            print(*entry)
        return 0
    if arguments.command == "one":
        result = one(arguments.kind, arguments.model_type, arguments.name, arguments.folder)
        arguments.log.write_text(json.dumps(result))
        return 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
