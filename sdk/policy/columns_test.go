package policy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every column has its name of sdk/ABI.md, and the last constant has the last name.
func TestColumns_NamesAreThoseOfABI(t *testing.T) {
	text, err := os.ReadFile("../ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nColumns: bit ")
	list, _, _ = strings.Cut(list, "\n\n")
	documented := regexp.MustCompile(`(\d+) ([a-zA-Z]+)`).FindAllString(list, -1)
	var named []string
	for bit, name := range columnNames {
		named = append(named, fmt.Sprint(bit, " ", name))
	}
	if got, want := strings.Join(named, ", "), strings.Join(documented, ", "); got != want {
		t.Errorf("names of columns:\n%s\nnames in ABI.md:\n%s", got, want)
	}
	if last := Columns(1) << (len(columnNames) - 1); last != LookAheadColumns {
		t.Errorf("the last name is that of column %#x, and the last column is %#x", uint64(last), uint64(LookAheadColumns))
	}
	if got := strings.Join((UseColumns | BudgetColumns).Names(), ","); got != "use,budget" {
		t.Errorf("names of two columns: %s", got)
	}
}
