"""Registers glyd's quantizer with transformers, when transformers is imported.

Importing torch and transformers takes seconds, and `import glyd` should not: a finder waits for the module that holds
transformers' quantizer tables, lets it load, and adds glyd to them.
"""

import importlib
import importlib.abc
import importlib.util
import sys

TABLES = "transformers.quantizers.auto"


class _LoaderThenRegister(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        _register()

    def __getattr__(self, name):  # get_source and the like, for tracebacks and inspect
        return getattr(self._loader, name)


class _TablesFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != TABLES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderThenRegister(spec.loader)
        return spec


def _register():
    importlib.import_module("glyd.hf.quantizer")  # it registers itself; it may be what is being imported already


def register_when_transformers_is_imported():
    if TABLES in sys.modules:
        _register()
    elif not any(isinstance(finder, _TablesFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TablesFinder())
