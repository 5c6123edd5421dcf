package manifest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n"
	for name, x := range map[string]struct {
		text string
		want []string
	}{
		"misspelt requests": {
			pod + "  containers:\n  - name: c\n    resources:\n      request: {cpu: 4}\n",
			[]string{`9: spec.containers[0].resources: unknown field "request"; did you mean requests?`},
		},
		"unknown field of resources": {
			pod + "  containers:\n  - resources: {wanted: {cpu: 4}}\n",
			[]string{`7: spec.containers[0].resources: unknown field "wanted"; use one of requests, limits`},
		},
		"requests outside resources": {
			pod + "  containers:\n  - requests: {cpu: 4}\n",
			[]string{`7: spec.containers[0]: unknown field "requests"; write it below resources`},
		},
		"several": {
			pod + "  priority: high\n  priorityClassNam: x\n  afinity: {}\n  tolerations: {key: a}\n  hostNetwork: 'true'\n  nodeSelector: {a: 1}\n",
			[]string{
				`6: spec.priority: must be an integer, not the string "high"; write an integer such as 1000`,
				`7: spec: unknown field "priorityClassNam"; did you mean priorityClassName?`,
				`8: spec: unknown field "afinity"; did you mean affinity?`,
				"9: spec.tolerations: must be a list, not an object; start each element with `- `",
				`10: spec.hostNetwork: must be true or false, not the string "true"; write true or false without quotes`,
				`11: spec.nodeSelector.a: must be a string, not 1; write "1"`,
			},
		},
		"within an affinity": {
			pod + "  affinity: {nodeAffinity: {requiredDuringScheduling: {}}}\n",
			[]string{`6: spec.affinity.nodeAffinity: unknown field "requiredDuringScheduling"; use one of requiredDuringSchedulingIgnoredDuringExecution, preferredDuringSchedulingIgnoredDuringExecution`},
		},
		"second document of JSON with tabs": {
			"{\"kind\":\"Service\"}\n{\"kind\":\"Deployment\",\n\t\"spec\":{\"replica\":2}}",
			[]string{`3: spec: unknown field "replica"; did you mean replicas?`},
		},
		"list": {
			"kind: List\nitems:\n- kind: Pod\n  spec: {priority: 5.5}\n",
			[]string{`4: items[0].spec.priority: must be an integer, not 5.5; write an integer such as 1000`},
		},
		"number in quotes and a large one": {
			pod + "  priority: '7'\n  terminationGracePeriodSeconds: 99999999999999999999\n",
			[]string{
				`6: spec.priority: must be an integer, not the string "7"; write 7 without quotes`,
				`7: spec.terminationGracePeriodSeconds: 99999999999999999999 does not fit into 64 bits; use a smaller number`,
			},
		},
		"irrelevant and future fields": {
			pod + "  hostPID: true\n  hostname: a\n  brandNewField: {x: 1}\n  containers:\n  - image: a\n    env: [{name: A, value: '1'}]\n    ports: [{name: web, containerPort: 80}]\n" +
				"    resources: {requests: {cpu: 1, memory: 1Gi}, claims: [{name: g}]}\nstatus: {hostIP: 1.2.3.4, phas: x}\n", nil,
		},
		"merged mapping":  {pod + "  containers:\n  - &c {name: a, resources: {requests: {cpu: 1}}}\n  - <<: *c\n    name: b\n", nil},
		"another kind":    {"kind: ConfigMap\nspec: {priorit: 1}\n", nil},
		"broken document": {"kind: Pod\nspec: {", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Check([]byte(x.text)) {
				got = append(got, strconv.Itoa(p.Line)+": "+p.String())
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(x.want, "\n"))
			}
		})
	}
}
