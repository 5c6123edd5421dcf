package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The error for an invalid class has a reason and a hint.
func TestPriorityClasses_RejectionsHaveHints(t *testing.T) {
	w := start(t)
	if resp, text := w.send("PUT", "/v1/priority-class/usual", `{"Value": 30, "GlobalDefault": true}`); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	for _, c := range []struct{ name, body, says, hint string }{
		{"high", `{"Value": 99999999999}`, "99999999999", "in this range"},
		{"high", `{"Value": -99999999999}`, "-99999999999", "in this range"},
		{"high", `{"Value": 1000000001}`, "1000000001 is above 1000000000", "write at most 1000000000"},
		{"system-x", `{"Value": 5}`, "reserved", "choose another name"},
		{"system-node-critical", `{"Value": 5}`, "2000001000 always", "leave the class out"},
		{"a b", `{"Value": 5}`, "spaces", "choose another name"},
		{"other", `{"Value": 40, "GlobalDefault": true}`, "the global default is already usual", "delete usual"},
		{"usual", `{"Value": 31, "GlobalDefault": true}`, "only the description may change", "delete the class"},
		{"high", `{"Value": 5, "PreemptionPolicy": "always"}`, "always", "omit it"},
	} {
		resp, text := w.send("PUT", "/v1/priority-class/"+strings.ReplaceAll(c.name, " ", "%20"), c.body)
		var e client.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", c.name, c.body, resp.StatusCode, text)
			continue
		}
		if e.Code != client.CodeInvalid || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %s: %q, hint %q; want %q, hint %q", c.name, c.body, e.Message, e.Hint, c.says, c.hint)
		}
	}
	list, _, err := w.client.PriorityClasses().List(t.Context(), nil)
	if w.check(err); len(list) != 3 { // usual, and two of the system
		t.Errorf("got %d classes", len(list))
	}
}
