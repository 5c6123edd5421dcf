package term

import (
	"bufio"
	"io"
	"strings"
)

// Table aligns rows under column titles.
type Table struct {
	Columns   []Column
	Indent    string // before every line
	NoHeaders bool
	rows      [][]Cell
}

// Column is one column of a Table.
type Column struct {
	Title string
	Right bool // right-aligned, for numbers
}

// Cell is a value of a row.
type Cell struct {
	Text string
	Look Emphasis
}

// Row adds a row of plain cells.
func (t *Table) Row(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.Cells(cells...)
}

// Cells adds a row. An empty cell is shown as a dash, so that it does not look like
// missing output.
func (t *Table) Cells(cells ...Cell) {
	for i := range cells {
		if cells[i].Text == "" {
			cells[i].Text = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Texts returns the titles of the columns and the text of every cell. Short rows are filled
// with empty cells.
func (t *Table) Texts() (header []string, rows [][]string) {
	for _, c := range t.Columns {
		header = append(header, c.Title)
	}
	for _, cells := range t.rows {
		row := make([]string, max(len(header), len(cells)))
		for i := range cells {
			row[i] = cells[i].Text
		}
		rows = append(rows, row)
	}
	return header, rows
}

// columnGap separates columns.
const columnGap = "  "

// Write writes the table.
func (t *Table) Write(w io.Writer, style Style) error {
	rows := t.rows
	if !t.NoHeaders {
		titles := make([]Cell, len(t.Columns))
		for i, c := range t.Columns {
			titles[i] = Cell{Text: c.Title, Look: Bold}
		}
		rows = append([][]Cell{titles}, rows...)
	}
	widths := make([]int, len(t.Columns))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], Columns(c.Text))
		}
	}
	out := bufio.NewWriter(w)
	for _, row := range rows {
		t.line(out, row, widths, style)
	}
	return out.Flush()
}

func (t *Table) line(out *bufio.Writer, row []Cell, widths []int, style Style) {
	_, _ = out.WriteString(t.Indent) // out stores the error
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-Columns(c.Text))
		text := style.Text(c.Look, c.Text)
		switch {
		case t.Columns[i].Right:
			text = pad + text
		case i < len(row)-1:
			text += pad
		}
		if i > 0 {
			_, _ = out.WriteString(columnGap)
		}
		_, _ = out.WriteString(text)
	}
	_ = out.WriteByte('\n')
}
