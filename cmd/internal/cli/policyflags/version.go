package policyflags

import "github.com/cede-scheduler/cede/core/model"

// VersionName returns N@V, as commands accept it.
func VersionName(name, id string) string {
	if id == "" {
		return name
	}
	return name + "@" + model.ShortVersion(id)
}
