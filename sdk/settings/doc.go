// Package settings reads the configuration of a policy, which is data, by the
// settings that the policy declares: every problem at once, each with its place
// and a remedy. It also owns the canonical spelling of a configuration, which
// is part of a version's identity, and the JSON in which a guest declares its
// settings.
//
// Hosts and tests call it. A guest never does: it is given a policy.Config.
// All functions may be called concurrently.
package settings
