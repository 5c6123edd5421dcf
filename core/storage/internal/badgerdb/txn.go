package badgerdb

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// Get returns the value of key, or nil if the key does not exist. The value is a copy,
// which remains valid after the transaction.
func Get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// View calls f with a read-only transaction.
func View(db *badger.DB, f func(*badger.Txn) error) error {
	return Guard(func() error {
		txn := db.NewTransaction(false)
		defer txn.Discard()
		return f(txn)
	})
}

// Update calls f with a new transaction and commits it if f returns nil. Panics of
// Badger are returned as errors.
func Update(db *badger.DB, f func(*badger.Txn) error) error {
	return Guard(func() error {
		txn := db.NewTransaction(true)
		defer txn.Discard()
		if err := f(txn); err != nil {
			return err
		}
		return txn.Commit()
	})
}

// DeleteKeys deletes keys in as many transactions of update as necessary. If it returns
// an error, a prefix of the keys may be deleted. 4096 keys stay far below the size of one
// transaction.
func DeleteKeys(update func(func(*badger.Txn) error) error, keys [][]byte) error {
	const most = 4096
	for len(keys) > 0 {
		part := keys[:min(len(keys), most)]
		err := update(func(txn *badger.Txn) error {
			for _, k := range part {
				if err := txn.Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[len(part):]
	}
	return nil
}

// WalkKeys calls f for each key with the prefix, without values, until f returns false.
// An item is valid only during its call.
func WalkKeys(txn *badger.Txn, prefix []byte, f func(*badger.Item) bool) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if !f(it.Item()) {
			return
		}
	}
}
