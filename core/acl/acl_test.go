package acl

import (
	"slices"
	"strings"
	"testing"
)

// covered is the whole table, by hand.
var covered = map[Role][]Role{
	Read:       {Read},
	Submit:     {Read, Submit},
	Operate:    {Read, Submit, Operate, Kubernetes},
	Policy:     {Policy},
	Node:       {Node},
	Kubernetes: {Kubernetes},
	Management: Roles,
}

func TestRole_CoversTheTable(t *testing.T) {
	t.Parallel()
	for _, have := range Roles {
		for _, need := range Roles {
			if got, want := have.Covers(need), slices.Contains(covered[have], need); got != want {
				t.Errorf("%s covers %s: %t, want %t", have, need, got, want)
			}
		}
	}
}

func TestAllows_IfAnyRoleCoversAnyNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have  string
		needs []Role
		want  bool
	}{
		{"", []Role{Read}, false},
		{"read", nil, false},
		{"read", []Role{Node, Read}, true},
		{"node,read", []Role{Submit}, false},
		{"policy,operate", []Role{Submit}, true},
		{"root", []Role{"root"}, false}, // no role: counts for nothing
		{"Management", []Role{Read}, false},
	} {
		if got := Allows(strings.Split(c.have, ","), c.needs...); got != c.want {
			t.Errorf("%q for %v: %t", c.have, c.needs, got)
		}
	}
}

func TestParseRoles_ReportsEveryUnknownName(t *testing.T) {
	t.Parallel()
	_, err := ParseRoles([]string{"read", "root", "admin"})
	if err == nil || !strings.Contains(err.Error(), `"root"`) || !strings.Contains(err.Error(), `"admin"`) {
		t.Errorf("error %v", err)
	}
	if _, err := ParseRoles(nil); err == nil {
		t.Error("no role at all is taken")
	}
	roles, err := ParseRoles([]string{"submit", " read", "submit"})
	if err != nil || !slices.Equal(roles, []Role{Read, Submit}) {
		t.Errorf("%v, %v", roles, err)
	}
}

func TestSecret_MatchesItsOwnHashAlone(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		secret, hash := NewSecret()
		if seen[secret] || !IsWellFormed(secret) || !Matches(secret, hash) {
			t.Fatalf("secret of %d characters: seen %t, plausible %t", len(secret), seen[secret], IsWellFormed(secret))
		}
		seen[secret] = true
		for _, wrong := range []string{"", secret[1:], secret + "a", strings.ToUpper(secret)} {
			if Matches(wrong, hash) {
				t.Errorf("a wrong secret of %d characters matches", len(wrong))
			}
		}
		if Matches(secret, [32]byte{}) {
			t.Error("a secret matches the zero hash")
		}
	}
	if a, b := NewAccessor(), NewAccessor(); a == b {
		t.Error("two tokens have one name")
	}
}
