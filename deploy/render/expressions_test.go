package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	sigsyaml "sigs.k8s.io/yaml"
)

// expressions returns the values of the keys with the name in a document, at any depth.
func expressions(v any, name string) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok && key == name {
				list = append(list, text)
			}
			list = append(list, expressions(value, name)...)
		}
	case []any:
		for _, value := range v {
			list = append(list, expressions(value, name)...)
		}
	}
	return list
}

// The parser of Prometheus accepts every expression of the alerts and of the dashboard, whose
// variables are replaced as Grafana does.
func TestExpressions_AreValidPromQL(t *testing.T) {
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", "a|b")
	for file, least := range map[string]int{"../../examples/deploy/prometheus/alerts.yaml": 10, "../grafana/cede.json": 40} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".yaml") {
			if text, err = sigsyaml.YAMLToJSON(text); err != nil {
				t.Fatal(err)
			}
		}
		var document any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		list := expressions(document, "expr")
		if len(list) < least {
			t.Errorf("%s has %d expressions", file, len(list))
		}
		for _, e := range list {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(e)); err != nil {
				t.Errorf("%s: %s: %v", file, e, err)
			}
		}
	}
}
