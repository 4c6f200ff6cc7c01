"""The store port and its adapters."""
