package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

var all = []policy.Setting{
	{Name: "on", Kind: policy.Bool, Default: "true"},
	{Name: "count", Kind: policy.Integer, Default: "3", Limits: policy.Between(1, 9)},
	{Name: "weight", Kind: policy.Number, Default: "0.5", Limits: policy.AtLeast(0)},
	{Name: "halfLife", Kind: policy.Duration, Default: "10m", Limits: policy.Between(1, 3600), Range: policy.Between(60, 3600)},
	{Name: "order", Kind: policy.Text, Default: "newest", OneOf: []string{"newest", "oldest"}, Choices: []string{"newest", "oldest"}},
	{Name: "spare", Kind: policy.Texts},
	{Name: "shares", Kind: policy.Numbers, Limits: policy.AtLeast(0)},
}

func TestRead_FillsInDefaultsAndCanonicalForm(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		``:   `{"count":3,"halfLife":"10m0s","on":true,"order":"newest","weight":0.5}`,
		`{}`: `{"count":3,"halfLife":"10m0s","on":true,"order":"newest","weight":0.5}`,
		`{"halfLife":90,"spare":["b","a"],"shares":{"y":1,"x":2.50},"on":"false","count":"9"}`: `{"count":9,"halfLife":"1m30s","on":false,"order":"newest","shares":{"x":2.5,"y":1},"spare":["b","a"],"weight":0.5}`,
		`{"halfLife":"1m30s","spare":"b, a","shares":"y=1,x=2.5","on":false,"count":9}`:        `{"count":9,"halfLife":"1m30s","on":false,"order":"newest","shares":{"x":2.5,"y":1},"spare":["b","a"],"weight":0.5}`,
	} {
		c, err := settings.Read(all, []byte(config))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		canonical := settings.Canonical(c)
		if string(canonical) != want {
			t.Errorf("%s: canonical form %s, want %s", config, canonical, want)
		}
		again, err := settings.Read(all, canonical)
		if err != nil || string(settings.Canonical(again)) != want {
			t.Errorf("%s does not read back: %v", canonical, err)
		}
	}
}

func TestConfig_ReturnsValuesByNameAndKind(t *testing.T) {
	t.Parallel()
	c, err := settings.Read(all, []byte(`{"spare":["b","a"],"shares":{"y":1,"x":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Bool("on") || c.Integer("count") != 3 || c.Number("weight") != 0.5 || c.Duration("halfLife") != 600e9 || c.Text("order") != "newest" {
		t.Errorf("read %+v", c.Values())
	}
	if diff := cmp.Diff([]string{"b", "a"}, c.Texts("spare")); diff != "" {
		t.Error(diff)
	}
	shares := c.Numbers("shares")
	if len(shares) != 2 || shares[0].Item != "x" || shares[0].Number != 2 || shares[1].Item != "y" {
		t.Errorf("shares are %+v", shares)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "no setting count of kind text") {
			t.Errorf("wrong kind: got panic %v", r)
		}
	}()
	c.Text("count")
}

func TestRead_ListsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := settings.Read(append(all, policy.Setting{Name: "must", Kind: policy.Text, Required: true}), []byte(
		`{"on":1,"count":10,"weight":-1,"halfLife":"soon","order":"any","spare":[1],"shares":{"x":-1},"halflife":3}`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"on: invalid value 1: must be true or false",
		"count: invalid value 10: must be an integer from 1 to 9",
		"weight: invalid value -1: must be a number, at least 0",
		`halfLife: invalid value "soon": must be a duration such as "1h30m" from 1s to 1h0m0s`,
		`order: invalid value "any": must be one of newest, oldest`,
		"spare: item 1: invalid value 1: must be a list of texts",
		"shares: x: invalid value -1: must be numbers by name, at least 0",
		"must: is required; it must be a text",
		"halflife: unknown setting; use one of on, count",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestRead_AcceptsObjectsOnly(t *testing.T) {
	t.Parallel()
	for _, config := range []string{`[]`, `1`, `{`, `{} x`, `"a"`} {
		if _, err := settings.Read(all, []byte(config)); err == nil {
			t.Errorf("%s was accepted", config)
		}
	}
}

func TestDecode_ReadsEncodedSettings(t *testing.T) {
	t.Parallel()
	got, err := settings.Decode(settings.Encode(all))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecode_RejectsInvalidSettings(t *testing.T) {
	t.Parallel()
	_, err := settings.Decode([]byte(`[{"name":"Big","kind":"bool"},{"name":"a","kind":"bool"},{"name":"a","kind":"bool"},
		{"name":"b","kind":"colour"},{"name":"c","kind":"integer","default":"x"},{"name":"d","kind":"integer","max":3},
		{"name":"e","kind":"integer","range":[1]},{"name":"f","kind":"text","range":[1,2]},{"name":"g","kind":"number","range":[2,2]},
		{"name":"h","kind":"number","min":1,"max":3,"range":[0,2]},{"name":"i","kind":"number","range":[0,2],"choices":["1","1","x"]}]`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`invalid setting name "Big"`, `"a" is declared twice`, `unknown kind "colour"`, `"c": default: invalid value "x"`, "max requires min",
		`"e": range must be two numbers`, `"f": range: a setting of kind text has none`, `"g": range: the second number`, `"h": range: exceeds the limits`,
		`"i": range and choices exclude each other`, `"i": choices: "1" is declared twice`, `"i": choices: invalid value "x"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestRead_WritesLimitsAsDigits(t *testing.T) {
	t.Parallel()
	bands := policy.Setting{Name: "bands", Kind: policy.Integer, Limits: policy.Between(0, 2147483647)}
	if _, err := settings.Read([]policy.Setting{bands}, []byte(`{"bands":-1}`)); err == nil || !strings.HasSuffix(err.Error(), "from 0 to 2147483647") {
		t.Error(err)
	}
}
