package kube

import (
	"strings"
	"testing"
)

// What is asked about must say what it wants: all that cannot be read is told.
func TestWork_UnreadableAmountsAreErrors(t *testing.T) {
	d, err := Read(strings.NewReader(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[
		{"name":"main","resources":{"requests":{"cpu":"two","memory":"1Gi"}}},{"name":"side","resources":{"limits":{"memory":"much"}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewTranslator(nil, &Notes{}).Work(d, nil)
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`Pod web, container main: cpu: "two" is no amount; write a quantity such as`, `container side: memory: "much"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q; want %q", err, want)
		}
	}
}
