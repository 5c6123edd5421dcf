package main

import "reflect"

// A conversion is how a field's value becomes a field of a message.
type conversion int

const (
	message     conversion = iota // or a list or map of messages
	same                          // assigned
	number                        // converted; with a check if it is an enumeration
	enumPointer                   // an optional enumeration
	plainText                     // made valid UTF-8
	namedText                     // the same, of a named type
	textList
	packedID   // an ID, packed
	packedIDs  // a list of them
	tableName  // a position in the table of names
	hash       // 32 bytes; none if all are zero
	ports      // port numbers
	vector     // resource amounts without trailing zeros
	amountMap  // text to a number of the same type
	textToText // text to text
	countMap   // text to int
	sharedMap  // assigned; an empty map becomes nil
)

var (
	bytesType  = reflect.TypeFor[[]byte]()
	textType   = reflect.TypeFor[string]()
	uint32Type = reflect.TypeFor[uint32]()
)

// kindOf chooses the conversion of a Go type to a type of a message.
func kindOf(v, m reflect.Type) conversion {
	switch v.Kind() {
	case reflect.String:
		return textKind(v, m)
	case reflect.Slice:
		return sliceKind(v, m)
	case reflect.Map:
		return mapKind(v)
	case reflect.Array:
		if v.Elem().Kind() == reflect.Uint8 && m == bytesType {
			return hash
		}
		if v.Elem().Kind() == reflect.Int64 {
			return vector
		}
	case reflect.Pointer:
		switch {
		case v == m:
			return same
		case m.Kind() == reflect.Pointer && m.Elem() == uint32Type:
			return enumPointer
		}
	case reflect.Struct:
	default: // booleans and numbers
		if v == m {
			return same
		}
		return number
	}
	return message
}

// textKind distinguishes the three encodings of text by the type of the message's
// field.
func textKind(v, m reflect.Type) conversion {
	switch {
	case m == bytesType:
		return packedID
	case m == uint32Type:
		return tableName
	case v != textType:
		return namedText
	}
	return plainText
}

// sliceKind covers lists that are not of messages; bytes are assigned without a copy.
func sliceKind(v, m reflect.Type) conversion {
	switch {
	case v == bytesType || v.Kind() == reflect.Slice && v.Elem().Kind() == reflect.Uint8:
		return same
	case v.Elem().Kind() == reflect.Uint16:
		return ports
	case v.Elem() == textType && m.Elem() == bytesType:
		return packedIDs
	case v.Elem() == textType:
		return textList
	}
	return message
}

// mapKind distinguishes maps by key and element: an int needs a conversion, a
// fixed-size number none.
func mapKind(v reflect.Type) conversion {
	switch element := v.Elem(); {
	case v.Key() != textType:
		return sharedMap
	case element == textType:
		return textToText
	case element == reflect.TypeFor[int]():
		return countMap
	case element.Kind() == reflect.Struct || element.Kind() == reflect.Pointer:
		return message
	}
	return amountMap
}

// elementOf returns the struct type in a field's type, and the shape around it.
func elementOf(t reflect.Type) (element reflect.Type, shape string) {
	switch t.Kind() {
	case reflect.Slice:
		shape, t = "[]", t.Elem()
	case reflect.Map:
		shape, t = "map", t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		return t.Elem(), shape + "*"
	}
	return t, shape
}
