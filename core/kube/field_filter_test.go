package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomJSON returns a random JSON value with optional white space. Keys are often
// those of decoded fields.
func randomJSON(d *rand.Rand, depth int) string {
	pad := []string{"", " ", "\n    ", "\t"}[d.IntN(4)]
	switch k := d.IntN(9); {
	case depth > 0 && k < 4:
		var parts []string
		for range d.IntN(5) {
			key := []string{
				"metadata", "spec", "status", "name", "labels", "containers", "Resources", "requests", "managedFields",
				"conditions", "image", "affinity", "é", `na\u006de`, `quo\"te`, strings.Repeat("long", 30),
			}[d.IntN(16)]
			parts = append(parts, fmt.Sprintf("%s%q%s:%s%s", pad, "", pad, pad, randomJSON(d, depth-1)))
			parts[len(parts)-1] = strings.Replace(parts[len(parts)-1], `""`, `"`+key+`"`, 1)
		}
		return "{" + strings.Join(parts, ",") + pad + "}"
	case depth > 0 && k < 6:
		var parts []string
		for range d.IntN(4) {
			parts = append(parts, pad+randomJSON(d, depth-1))
		}
		return "[" + strings.Join(parts, ",") + pad + "]"
	}
	return []string{`"x"`, `"a\\"`, `"{\"[,:"`, "12", "-1.5e3", "true", "null", `""`, `"1Gi"`}[d.IntN(9)] + pad
}

// Filtering must not change the decoded object, even if the text does not match the
// kind. If the text is truncated, decoding must fail with and without filtering.
func TestFilterFields_PreservesDecodedFields(t *testing.T) {
	d := rand.New(rand.NewPCG(1, 2))
	decoded, invalid, shorter := 0, 0, 0
	for range 6000 {
		kind := []string{"Pod", "Node"}[d.IntN(2)]
		text := randomJSON(d, 6)
		if d.IntN(10) == 0 {
			text = text[:d.IntN(len(text)+1)]
		}
		want, wantErr := decodeObject(kind, []byte(text))
		pruned := filterFields(kind, []byte(text), nil)
		got, err := decodeObject(kind, pruned)
		if !json.Valid([]byte(text)) {
			if invalid++; err == nil {
				t.Fatalf("%q is not valid JSON but was decoded as %q", text, pruned)
			}
			continue
		}
		if (wantErr == nil) != (err == nil) {
			t.Fatalf("%q: %v; of %q: %v", text, wantErr, pruned, err)
		}
		if len(pruned) < len(text) {
			shorter++
		}
		if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
			t.Fatalf("%q filtered to %q:\n%s", text, pruned, diff)
		} else if wantErr == nil {
			decoded++
		}
	}
	t.Logf("%d decoded, %d invalid, %d shortened", decoded, invalid, shorter)
	if decoded < 500 || invalid < 200 || shorter < 500 {
		t.Errorf("%d decoded, %d invalid, %d shortened: too few for the test to be meaningful", decoded, invalid, shorter)
	}
}
