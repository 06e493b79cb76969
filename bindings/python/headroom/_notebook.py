"""How replies look in a notebook."""

from __future__ import annotations

import html

_HEIGHT = 640  # pixels; the frame can be dragged


def escape(text):
    """Return text for HTML."""
    return html.escape(str(text))


def framed(page):
    """Return a page in a frame of its own: its styles and scripts do not touch the notebook."""
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{_HEIGHT}px;border:0;resize:vertical;overflow:auto"></iframe>'
    )


def _cell(value):
    if isinstance(value, dict):
        return table(value) if len(value) <= 12 else f"{len(value)} members"
    if isinstance(value, list) and (len(value) > 8 or any(isinstance(x, dict) for x in value)):
        return f"{len(value)} rows"
    if isinstance(value, float):
        return escape(f"{value:.6g}")
    return escape(value)


def table(data):
    """Return an object as a small table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(key)}</th><td>{_cell(value)}</td></tr>"
        for key, value in data.items()
    )
    return f"<table>{rows}</table>"
