package policymgr

import (
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// findVersion returns the version of a policy by a unique prefix of its ID, with or
// without the name of the hash.
func findVersion(snap *state.Snapshot, name, prefix string) (*model.PolicyVersion, error) {
	var found []*model.PolicyVersion
	loaded := map[string]bool{}
	for _, v := range snap.PolicyVersions() {
		loaded[v.Name] = true
		if v.Name == name && hasPrefix(v.ID, prefix) {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, apierror.New(apierror.CodeInvalid, "%s@%s is ambiguous: it matches %d versions: %s", name, prefix, len(found), shortVersions(found)).
			WithHint("use more digits")
	case !loaded[name]:
		return nil, apierror.New(apierror.CodeNotFound, "no version of policy %q is loaded", name).
			WithHint("%s", loadedHint(slices.Sorted(maps.Keys(loaded))))
	}
	return nil, apierror.New(apierror.CodeNotFound, "policy %s has no version %s", name, prefix).
		WithHint("the loaded versions are %s", shortVersions(versionsOf(snap, name)))
}

// defaultVersion is findVersion, but if prefix is empty it returns the active version, or
// the only one that is loaded.
func (m *Manager) defaultVersion(name, prefix string) (*model.PolicyVersion, error) {
	snap := m.cfg.Store.Snapshot()
	if prefix != "" {
		return findVersion(snap, name, prefix)
	}
	if s := snap.PolicyState(name); s != nil && s.Active != "" {
		return findVersion(snap, name, s.Active)
	}
	list := versionsOf(snap, name)
	switch {
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, apierror.New(apierror.CodeInvalid, "no version of policy %s is active, and %d are loaded: %s", name, len(list), shortVersions(list)).
			WithHint("name one, as in %s@%s", name, model.ShortVersion(list[0].ID))
	case m.active.builtins[name] != nil:
		return nil, apierror.New(apierror.CodeConflict, "%s is a builtin policy and has no module", name).WithHint("every cede of the same release contains it")
	}
	return findVersion(snap, name, "") // returns the error
}

func hasPrefix(id, prefix string) bool {
	const hash = "sha256:"
	return prefix != "" && strings.HasPrefix(strings.TrimPrefix(id, hash), strings.TrimPrefix(prefix, hash))
}

func loadedHint(names []string) string {
	if len(names) == 0 {
		return "load one with cede policy load"
	}
	return "versions are loaded of " + strings.Join(names, ", ")
}

// versionsOf returns the versions of a policy, the newest first.
func versionsOf(snap *state.Snapshot, name string) []*model.PolicyVersion {
	var list []*model.PolicyVersion
	for _, v := range snap.PolicyVersions() {
		if v.Name == name {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b *model.PolicyVersion) int {
		switch {
		case a.CreateIndex > b.CreateIndex:
			return -1
		case a.CreateIndex < b.CreateIndex:
			return 1
		}
		return 0
	})
	return list
}

func shortVersions(list []*model.PolicyVersion) string {
	var short []string
	for _, v := range list {
		short = append(short, model.ShortVersion(v.ID))
	}
	return strings.Join(short, ", ")
}
