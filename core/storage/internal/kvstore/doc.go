// Package kvstore owns the second Badger directory of a server, which the policy
// modules and the history share, and the assignment of key prefixes in it.
//
// It does not interpret values. blob and history use it. A Store is safe for
// concurrent use unless a method states otherwise; writers hold Mu.
package kvstore
