"""A matplotlib figure as an SVG element for an HTML page, with the colours and the font of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from dpaudit.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box: TypeAlias = tuple[float, float, float, float]  # left, bottom, width, height of the axes, in shares of the figure
WIDE: Box = (0.17, 0.15, 0.78, 0.82)
LABELLED: Box = (0.40, 0.15, 0.55, 0.75)  # with a margin for names on the left

# Stand-ins that the page replaces: in the SVG each becomes var(--name, fallback), so light and dark come from the CSS.
COLOURS = {
    "ink": "#1b2431",
    "muted": "#5a6574",
    "grid": "#d8dde4",
    "data": "#0a61a7",
    "neighbour": "#b3530b",
    "alarm": "#b2251d",
    "event": "#caa21a",
}
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.6,
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.6,
    "hatch.color": COLOURS["ink"],
    "hatch.linewidth": 0.7,
}


def check_matplotlib() -> None:
    """Raise :class:`MissingDependency` if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingDependency(f"Pictures need matplotlib: pip install 'dpaudit[report]' ({error}).") from None


def draw_svg(draw: Callable[[Axes], None], prefix: str, title: str, box: Box = WIDE) -> str:
    """Draw on an empty figure and return its SVG element; equal input gives equal text under any settings of the user."""
    check_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")  # a glyph that matplotlib's font lacks is still text in the SVG
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_RC, "svg.hashsalt": f"dpaudit {prefix}"})
        figure = Figure(figsize=(4.4, 3.0))
        axes = figure.add_axes(box)
        draw(axes)
        axes.minorticks_off()
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        # The canvas itself, not savefig, which would draw everything twice.
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]  # matplotlib's
    return _for_page(buffer.getvalue(), prefix, title)


def _for_page(svg: bytes, prefix: str, title: str) -> str:
    """Without namespaces, fixed size, metadata and unused ids; the others its own, and colours as CSS variables."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("metadata", "}style")):
                parent.remove(child)
    used = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", ElementTree.tostring(root, encoding="unicode")))
    named = {name for pair in used for name in pair}
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        if attributes.get("id") not in named:
            attributes.pop("id", None)
        element.attrib.clear()
        for name, value in attributes.items():
            element.set(name, _for_attribute(name, value, prefix))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", title)
    return ElementTree.tostring(root, encoding="unicode")


def _for_attribute(name: str, value: str, prefix: str) -> str:
    match name:
        case "id":
            return prefix + value
        case "href":
            return value.replace("#", f"#{prefix}", 1)
        case "style":
            value = re.sub(r"font-family: [^;]*; ?", "", value)  # the page's own
    return _coloured(value.replace("url(#", f"url(#{prefix}"))


_NAMES: Mapping[str, str] = {colour: name for name, colour in COLOURS.items()}


def _coloured(value: str) -> str:
    return re.sub("|".join(_NAMES), lambda found: f"var(--{_NAMES[found[0]]}, {found[0]})", value)
