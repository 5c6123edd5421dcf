package operator

import (
	"strings"
	"testing"
)

// Secrets are redacted in every syntax.
func TestRedact_RemovesSecrets(t *testing.T) {
	const secret = "s3cr3t-value"
	ours := "cede_" + strings.Repeat("aB3-", 11)
	for _, text := range []string{
		`{"Token": "` + secret + `", "a": 1}`, `{"gossip.keys":"` + secret + `"}`, `secret=` + secret + ` b=2`, `password: ` + secret,
		`{"client":{"token":"` + secret + `"}}`, `Authorization: ` + secret, `level=INFO msg=x encryption="` + secret + `"`,
		`known ` + secret + ` anywhere`, `{"SecretID":"` + ours + `"}`, `a request with ` + ours + ` in it`,
	} {
		got := string(redact([]byte(text), []string{"known " + secret, ""}))
		if strings.Contains(got, secret) || strings.Contains(got, ours) {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{`{"Name":"n1","Leader":true}`, "cede_broker_redeliveries_total 3\n"} {
		if got := string(redact([]byte(text), nil)); got != text {
			t.Errorf("text without secrets is changed: %s", got)
		}
	}
}
