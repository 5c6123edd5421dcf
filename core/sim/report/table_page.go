package report

import "io"

// A TablePage is a page of tables without figures, in the style of Write.
type TablePage struct {
	Title  string
	Lead   []string // paragraphs
	Tables []Table
	Source []Fact // how to repeat it
}

// A Table is one section of a TablePage. Every row has a cell for each header.
type Table struct {
	Title, Note string
	Header      []string
	Rows        [][]string
}

// Write writes the page. It returns the first error of w.
func (p *TablePage) Write(w io.Writer) error {
	return pageTemplate.ExecuteTemplate(w, "tables", p)
}
