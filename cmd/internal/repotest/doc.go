// Package repotest tests the repository itself: the direction of imports, package
// comments, the length of files, the size of packages and types, the arithmetic of
// decision code, the language of comments, messages and documents, and references
// from documents to files. Each failure states the rule and its reason.
//
// It holds no code of the product, and no package imports it.
package repotest
