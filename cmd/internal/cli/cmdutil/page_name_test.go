package cmdutil

import "testing"

func TestPage_NameShortensLongNames(t *testing.T) {
	const long = "ip-10-20-30-40.eu-central-1.compute.internal.example"
	for _, test := range []struct {
		page       Page
		name, want string
	}{
		{Page{}, "node-1", "node-1"},
		{Page{}, "exactly-twenty-eight-runes-x", "exactly-twenty-eight-runes-x"},
		{Page{}, long, "ip-10-20-30-4…ternal.example"},
		{Page{Wide: true}, long, long},
	} {
		if got := test.page.Name(test.name); got != test.want {
			t.Errorf("%q: got %q, want %q", test.name, got, test.want)
		}
	}
}
