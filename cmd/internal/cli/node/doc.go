// Package node holds the cede node commands: list, describe, drain and taint nodes.
package node
