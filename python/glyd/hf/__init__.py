"""Packed models in transformers: loading, modules, saving. Imported only where torch and transformers are."""
