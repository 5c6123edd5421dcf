// Package settings parses the configuration of a policy by the settings that the
// policy declares. It reports every problem at once, each with its location and a
// remedy. It also defines the canonical form of a configuration, which is part of a
// version's identity, and the JSON in which a guest declares its settings.
//
// Hosts and tests call it. A guest does not: it receives a policy.Config. All
// functions are safe for concurrent use.
package settings
