package term

import (
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
)

func TestTable_AlignsAndMarks(t *testing.T) {
	table := Table{Columns: []Column{{Title: "NAME"}, {Title: "COUNT", Right: true}, {Title: "WHY"}}, Indent: " "}
	table.Row("a", "7", "short")
	table.Cells(Cell{Text: "größer"}, Cell{Text: "1,000", Look: Red}, Cell{})
	for _, tc := range []struct {
		name      string
		noHeaders bool
		style     Style
		want      string
	}{
		{"plain", false, Style{}, " NAME    COUNT  WHY\n a           7  short\n größer  1,000  -\n"},
		{"without headers", true, Style{}, " a           7  short\n größer  1,000  -\n"},
		{"colour", true, Colour, " a           7  short\n größer  \x1b[31m1,000\x1b[0m  -\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table.NoHeaders = tc.noHeaders
			var b strings.Builder
			if err := table.Write(&b, tc.style); err != nil || b.String() != tc.want {
				t.Errorf("got %v\n%q want\n%q", err, b.String(), tc.want)
			}
		})
	}
}

// Columns stay aligned behind characters of two columns, and of none.
func TestTable_AlignsWideCharacters(t *testing.T) {
	table := Table{Columns: []Column{{Title: "NAME"}, {Title: "COUNT", Right: true}}}
	for _, name := range []string{"plain", "\u6771\u4eac", "e\u0301a\u200b", "\U0001f680", "\uff21\uff22"} {
		table.Row(name, "1")
	}
	want := "NAME   COUNT\nplain      1\n\u6771\u4eac       1\ne\u0301a\u200b         1\n\U0001f680         1\n\uff21\uff22       1\n"
	var b strings.Builder
	if err := table.Write(&b, Style{}); err != nil || b.String() != want {
		t.Errorf("got %v\n%s want\n%s", err, b.String(), want)
	}
}

func TestProgressLine_ClipsWideCharacters(t *testing.T) {
	if got := clip(strings.Repeat("\u6771", 10), 12); got != strings.Repeat("\u6771", 5)+"…" {
		t.Error(got)
	}
	if got := ProgressLine(-1, 0, strings.Repeat("\u6771", 30), strings.Repeat("\u4eac", 30)); got != strings.Repeat("\u6771", 30) {
		t.Error(got)
	}
}

func TestStyleFor_RespectsEnvironment(t *testing.T) {
	for _, tc := range []struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		{true, nil, true},
		{false, nil, false},
		{true, map[string]string{"NO_COLOR": "1"}, false},
		{true, map[string]string{"TERM": "dumb"}, false},
		{true, map[string]string{"TERM": "xterm"}, true},
	} {
		if got := StyleFor(tc.terminal, func(k string) string { return tc.env[k] }); got.on != tc.want {
			t.Errorf("terminal %v, %v: colour %v", tc.terminal, tc.env, got.on)
		}
	}
}

func TestProgress_LineEveryTenSecondsIfNotTerminal(t *testing.T) {
	var b strings.Builder
	c := clock.NewVirtual(time.Unix(0, 0))
	p := NewProgress(&b, false, nil, c)
	for second := range 35 {
		c.AdvanceTo(time.Unix(int64(second), 0))
		p.Show(func(d time.Duration) string { return d.String() })
	}
	p.Done()
	if want := "10s\n20s\n30s\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestProgress_LiveLineIsRewrittenAndErased(t *testing.T) {
	var b strings.Builder
	c := clock.NewVirtual(time.Unix(0, 0))
	p := NewProgress(&b, true, func() int { return 8 }, c)
	show := func(text string) { p.Show(func(time.Duration) string { return text }) }
	show("too early")
	c.AdvanceTo(time.Unix(1, 0))
	show("one")
	show("at once")
	c.AdvanceTo(time.Unix(2, 0))
	show("two is too long")
	p.Done()
	c.AdvanceTo(time.Unix(3, 0))
	show("too late")
	if want := "\r\x1b[Kone\r\x1b[Ktwo is…\r\x1b[K"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestProgress_RepeatsUntilDone(t *testing.T) {
	var b strings.Builder
	c := clock.NewVirtual(time.Unix(0, 0))
	p := NewProgress(&b, false, nil, c)
	p.Repeat(func(d time.Duration) string { return d.String() })
	c.AdvanceTo(time.Unix(25, 0))
	p.Done()
	c.AdvanceTo(time.Unix(60, 0))
	if want := "10s\n20s\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
