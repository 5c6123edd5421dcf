package suggest

import (
	"strings"
	"testing"
)

// A hint names the field that was probably meant, or else lists the valid ones.
func TestField_NamesNearestOrListsAll(t *testing.T) {
	t.Parallel()
	valid := []string{"count", "id"}
	for written, want := range map[string]string{"cuont": "did you mean count?", "colour": "valid fields: count, id"} {
		if got := Field(written, valid); got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
	if got := AddField(Field("colour", valid), "template"); got != "valid fields: count, id, template" {
		t.Errorf("with one more field: %q", got)
	}
	if got := AddField(Field("cuont", valid), "template"); got != "did you mean count?" {
		t.Errorf("a suggestion is unchanged: %q", got)
	}
}

func TestQuestion_JoinsNames(t *testing.T) {
	t.Parallel()
	if got := Question("a", "b", "c"); got != "did you mean a, b or c?" {
		t.Error(got)
	}
}

// A message of several problems prints each list of valid fields once.
func TestLists_OmitsRepeatedList(t *testing.T) {
	t.Parallel()
	var lists Lists
	var got []string
	for _, remedy := range []string{"valid fields: a, b", "use x", "valid fields: a, b", "use x", "valid fields: c"} {
		got = append(got, lists.Once(remedy))
	}
	if want := "valid fields: a, b|use x||use x|valid fields: c"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
