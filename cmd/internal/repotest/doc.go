// Package repotest holds the house together: tests over the repository itself.
// They check the direction of imports, package comments, the length of files,
// the arithmetic of decision code, and that the prose names what exists. Each
// failure says the reason for the rule it found broken.
//
// It holds no code of the product and nothing imports it. A package that is
// not written yet is no failure; one that is written is checked in full.
package repotest
