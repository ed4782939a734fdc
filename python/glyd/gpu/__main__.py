"""`python -m glyd.gpu fit|pack|verify`: the program's verbs, with this machine's GPU as the default."""

import argparse
import json
import sys

from .. import _api
from .._errors import Error

EXIT_CODES = {1: 2, 2: 1, 3: 1, 4: 4, 5: 1, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3}  # a status of the library -> the program's


def parser():
    top = argparse.ArgumentParser(prog="python -m glyd.gpu", description=__doc__.splitlines()[0])
    verbs = top.add_subparsers(dest="verb", required=True)
    fit = verbs.add_parser("fit", help="will the model fit?")
    fit.add_argument("source")
    fit.add_argument("--gpu", help='"48GB", "H200" ...; the first GPU of this machine if not given')
    fit.add_argument("--context", type=int, default=8192)
    fit.add_argument("--batch", type=int, default=1)
    pack = verbs.add_parser("pack", help="packs a checkpoint")
    pack.add_argument("source")
    pack.add_argument("target")
    pack.add_argument("--layout", default="auto")
    pack.add_argument("--threads", type=int, default=0)
    pack.add_argument("--overwrite", action="store_true")
    pack.add_argument("--no-verify", action="store_true")
    verify = verbs.add_parser("verify", help="checks every byte of a packed directory")
    verify.add_argument("directory")
    verify.add_argument("--source", help="the checkpoint it was packed from, to compare with")
    for verb in (fit, pack, verify):
        verb.add_argument("--revision")
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return top


def this_gpu():
    import torch

    if not torch.cuda.is_available():
        sys.exit("python -m glyd.gpu fit: torch finds no GPU here; name one with --gpu 48GB")
    return torch.cuda.get_device_properties(0).total_memory


def run(arguments):
    if arguments.verb == "fit":
        gpu = arguments.gpu or this_gpu()
        return _api.fit(
            arguments.source,
            gpu=gpu,
            context=arguments.context,
            batch=arguments.batch,
            revision=arguments.revision,
        )
    if arguments.verb == "pack":
        return _api.pack(
            arguments.source,
            arguments.target,
            layout=arguments.layout,
            threads=arguments.threads,
            overwrite=arguments.overwrite,
            verify=not arguments.no_verify,
            revision=arguments.revision,
        )
    return _api.verify(arguments.directory, source=arguments.source, revision=arguments.revision)


def main(argv=None):
    arguments = parser().parse_args(argv)
    try:
        found = run(arguments)
    except Error as error:
        print(f"glyd: {error}", file=sys.stderr)
        return EXIT_CODES.get(error.status, 1)
    document = found.to_dict() if hasattr(found, "to_dict") else found
    if arguments.json:
        print(json.dumps(document, indent=2))
    elif arguments.verb == "fit":
        print(found)
    else:
        for name, value in document.items():
            if not isinstance(value, (dict, list)):
                print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
