package kube

import (
	"encoding/json"
	"testing"
)

// A proposed node without victims is not a candidate, in either form of the request.
func TestProposedVictims_OmitsNodesWithoutVictims(t *testing.T) {
	for _, text := range []string{
		`{"NodeNameToMetaVictims": {"n1": null, "n2": {"Pods": [{"UID": "u"}]}}}`,
		`{"NodeNameToVictims": {"n1": null, "n2": {"Pods": [{"metadata": {"uid": "u"}}, null]}}}`,
	} {
		var args ExtenderPreemptionArgs
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			t.Fatal(err)
		}
		got := args.ProposedVictims()
		if len(got) != 1 || len(got["n2"].Pods) != 1 || got["n2"].Pods[0].UID != "u" {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// ReadExtenderArgs must decode any text as encoding/json does.
func FuzzReadExtenderArgs(f *testing.F) {
	for _, text := range []string{
		`{"Pod":{"metadata":{"name":"p"}},"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"}}, {"a":"]}\""} ]},"NodeNames":null}`,
		` { "nodes" : { "ITEMS" : [ ] , "kind":"List" } } `, `{"Nodes":{"items":null}}`, `{"Nodes":null,"NodeNames":["a","b"]}`,
		`{"Nodes":{"items":[1,"x",null,[{}]]}}`, `{"Nodes":{"items":[{}],"items":[]}}`, `{"Nodes":{"items":[{}]},"Nodes":null}`, `{}`, `null`, `[]`, ``,
		`{"Nodes":{"items":[{}]},"Nodes":{}}`, `{"Pod":{"spec":3},"Nodes":{"items":[{}]}}`, `{"Nodes":{"items":[{}]}} x`, `{"Node\u0073":{"items":[{}]}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want ExtenderArgs
		wantErr := json.Unmarshal([]byte(text), &want)
		got, err := ReadExtenderArgs([]byte(text))
		if wantErr != nil && !json.Valid([]byte(text)) {
			return // invalid node texts are detected later
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("read\n%s\nwant\n%s", a, b)
		}
	})
}
