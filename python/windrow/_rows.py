"""Rows as a table of text, and of HTML for notebooks."""

# Rows and columns that are shown, and the characters of a value.
ROWS = 10
COLUMNS = 12
WIDTH = 32


def text(batch, more=False):
    """The first rows of a record batch; with ``more``, others follow."""
    names, kinds, rows = _shown(batch)
    cells = [names, kinds, *([_cut("null" if cell is None else cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    lines.insert(2, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, _counted(batch, more)])


def html(batch, more=False):
    """The same for notebooks."""
    names, kinds, rows = _shown(batch)
    head = "".join(f"<th>{escaped(name)}<br><small>{escaped(kind)}</small></th>" for name, kind in zip(names, kinds))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<small>{escaped(_counted(batch, more))}</small>"
    )


def escaped(value):
    """Text that means itself in HTML."""
    return str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shown(batch):
    names, kinds = batch.schema.names, batch.schema.types
    hidden = len(names) > COLUMNS
    rows = [row[:COLUMNS] + ["..."] * hidden for row in batch.texts(ROWS)]
    return names[:COLUMNS] + ["..."] * hidden, kinds[:COLUMNS] + [""] * hidden, rows


def _cell(cell):
    return "<td><em>null</em></td>" if cell is None else f"<td>{escaped(_cut(cell))}</td>"


def _cut(cell):
    cell = cell.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    return cell if len(cell) <= WIDTH else f"{cell[:WIDTH - 3]}..."


def _counted(batch, more):
    count = len(batch)
    columns = f", {len(batch.schema)} columns" if len(batch.schema) > COLUMNS else ""
    if more:
        return f"(the first {min(count, ROWS)} rows{columns})"
    return f"({f'the first {ROWS} of ' if count > ROWS else ''}{count:,} rows{columns})"
