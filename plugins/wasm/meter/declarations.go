package meter

// maxArity is the maximum number of parameters and results of a function or block. It
// bounds the work of one instruction.
const maxArity = 256

// Limits on declarations, which take an engine much more memory than a module.
const (
	maxTypes    = 10_000
	maxImports  = 1_000
	maxGlobals  = 10_000
	maxExports  = 10_000
	maxSegments = 50_000 // of memory and of tables
)

// limited reads the length of a vector with at most limit elements.
func (r *reader) limited(size, limit int, what string) int {
	at := r.pos
	n := r.count(size, what)
	if n > limit {
		r.fail(ErrLimit, at, "split the module", "%d %s, limit is %d", n, what, limit)
		return 0
	}
	return n
}

func (c *contents) readTypes(r *reader) {
	n := r.limited(3, maxTypes, "types")
	c.types = make([]Signature, 0, n)
	for range n {
		at := r.pos
		switch form := r.byte(); form {
		case 0x60:
		case 0x4e, 0x4f, 0x50, 0x5f, 0x5e:
			r.fail(ErrUnsupported, at, "build without garbage collection", "type form %#x (GC)", form)
		default:
			r.malformed(at, "unknown type form %#x", form)
		}
		s := Signature{Params: r.valueTypes("parameters")}
		s.Results = r.valueTypes("results")
		if r.failed() {
			return
		}
		c.types = append(c.types, s)
	}
}

func (r *reader) valueTypes(what string) []ValueType {
	at := r.pos
	n := r.count(1, what)
	if n > maxArity {
		r.fail(ErrLimit, at, "pass them in memory", "a type has %d %s, limit is %d", n, what, maxArity)
	}
	if n == 0 || r.failed() {
		return nil
	}
	types := make([]ValueType, n)
	for i := range types {
		types[i] = r.valueType()
	}
	return types
}

// valueType reads a value type.
func (r *reader) valueType() ValueType {
	at := r.pos
	t := ValueType(r.byte())
	if !r.failed() {
		r.checkValueType(at, t)
	}
	return t
}

func (r *reader) checkValueType(at int, t ValueType) {
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	case 0x63, 0x64:
		r.fail(ErrUnsupported, at, "", "value type %#x (typed function references)", byte(t))
	case 0x69, 0x74:
		r.fail(ErrUnsupported, at, "build without exceptions", "value type %#x (exceptions)", byte(t))
	case 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73:
		r.fail(ErrUnsupported, at, "build without garbage collection", "value type %#x (GC)", byte(t))
	default:
		r.malformed(at, "unknown value type %#x", byte(t))
	}
}

// refType reads a reference type.
func (r *reader) refType() ValueType {
	at := r.pos
	t := r.valueType()
	if !r.failed() && t != FuncRef && t != ExternRef {
		r.malformed(at, "%v is not a reference type", t)
	}
	return t
}

func (c *contents) readImports(r *reader) {
	n := r.limited(4, maxImports, "imports")
	for range n {
		imp := Import{Module: r.name("the module of an import"), Name: r.name("the name of an import")}
		at := r.pos
		imp.Kind = Kind(r.byte())
		if r.failed() {
			return
		}
		switch imp.Kind {
		case KindFunction:
			imp.Signature = c.addFunction(r)
			c.importedFunctions++
		case KindTable:
			r.refType()
			r.limits("table")
			c.importedTables++
		case KindMemory:
			r.limits("memory")
			c.importedMemories++
			c.checkMemories(r, at)
		case KindGlobal:
			r.globalType()
			c.importedGlobals++
		default:
			r.badKind(at, byte(imp.Kind))
		}
		if r.failed() {
			return
		}
		c.imports = append(c.imports, imp)
	}
}

func (r *reader) badKind(at int, kind byte) {
	if kind == 4 {
		r.fail(ErrUnsupported, at, "build without exceptions", "a tag (exceptions)")
		return
	}
	r.malformed(at, "unknown kind %#x", kind)
}

// addFunction reads the type of a function and counts the function.
func (c *contents) addFunction(r *reader) Signature {
	at := r.pos
	t := r.u32()
	switch {
	case r.failed():
		return Signature{}
	case int64(t) >= int64(len(c.types)):
		r.malformed(at, "type %d does not exist, there are %d", t, len(c.types))
		return Signature{}
	case len(c.functions) >= c.options.MaxFunctions:
		r.fail(ErrLimit, at, "split the module, or raise the limit", "more than %d functions", c.options.MaxFunctions)
		return Signature{}
	}
	c.functions = append(c.functions, t)
	return c.types[t]
}

func (c *contents) readFunctions(r *reader) {
	n := r.count(1, "functions")
	for range n {
		if r.failed() {
			return
		}
		c.addFunction(r)
	}
}

// maxTables and MaxTableElements bound the memory of tables.
const maxTables = 16

func (c *contents) readTables(r *reader) {
	at := r.pos
	n := r.count(3, "tables")
	if n+c.importedTables > maxTables {
		r.fail(ErrLimit, at, "use fewer tables", "%d tables, limit is %d", n+c.importedTables, maxTables)
	}
	for range n {
		at = r.pos
		if r.rest() > 0 && r.buf[at] == 0x40 {
			r.fail(ErrUnsupported, at, "", "a table with an initial value (typed function references)")
		}
		t := table{element: r.refType(), Limits: r.limits("table")}
		limit := uint32(min(c.options.MaxTableElements, 1<<27))
		if !r.failed() && t.Min > limit {
			r.fail(ErrLimit, at, "reduce the initial size of the table", "a table has %d initial elements, limit is %d", t.Min, limit)
		}
		if !t.HasMax || t.Max > limit {
			t.Max, t.HasMax = limit, true
		}
		if r.failed() {
			return
		}
		c.tables = append(c.tables, t)
	}
}

func (c *contents) readMemories(r *reader) {
	at := r.pos
	n := r.count(2, "memories")
	c.checkMemories(r, at)
	for range n {
		at = r.pos
		l := r.limits("memory")
		if r.failed() {
			return
		}
		if c.memory != nil || c.importedMemories > 0 {
			r.fail(ErrUnsupported, at, "build for one memory", "more than one memory (multi-memory)")
		}
		c.memory = &l
	}
}

func (c *contents) checkMemories(r *reader, at int) {
	if c.importedMemories > 1 {
		r.fail(ErrUnsupported, at, "build for one memory", "more than one memory (multi-memory)")
	}
}

// limits reads the size limits of a table or a memory.
func (r *reader) limits(what string) Limits {
	at := r.pos
	flags := r.byte()
	if r.failed() {
		return Limits{}
	}
	switch {
	case flags > 7:
		r.malformed(at, "the limits of a %s have unknown flags %#x", what, flags)
	case flags > 3:
		r.fail(ErrUnsupported, at, "build for wasm32", "a 64-bit %s (memory64)", what)
	case flags > 1:
		r.fail(ErrUnsupported, at, "build without threads", "a shared %s (threads)", what)
	}
	l := Limits{Min: r.u32()}
	if flags == 1 {
		l.Max, l.HasMax = r.u32(), true
	}
	if !r.failed() && l.HasMax && l.Min > l.Max {
		r.malformed(at, "the limits of a %s start at %d and end at %d", what, l.Min, l.Max)
	}
	return l
}

func (r *reader) globalType() {
	r.valueType()
	at := r.pos
	if m := r.byte(); m > 1 {
		r.malformed(at, "invalid mutability %#x of a global", m)
	}
}

func (c *contents) readGlobals(r *reader) {
	c.definedGlobals = r.limited(4, maxGlobals, "globals")
	for range c.definedGlobals {
		if r.failed() {
			return
		}
		r.globalType()
		c.constant(r)
	}
}

func (c *contents) readExports(r *reader) {
	n := r.limited(3, maxExports, "exports")
	seen := make(map[string]bool)
	for range n {
		at := r.pos
		e := Export{Name: r.name("the name of an export")}
		kindAt := r.pos
		e.Kind = Kind(r.byte())
		index := r.u32()
		if r.failed() {
			return
		}
		switch {
		case e.Name == FuelGlobal, e.Name == StartExport:
			r.fail(ErrReserved, at, "rename the export", "the module exports %q, which is reserved for metering", e.Name)
		case seen[e.Name]:
			r.malformed(at, "%q is exported twice", e.Name)
		case e.Kind > KindGlobal:
			r.badKind(kindAt, byte(e.Kind))
		case int64(index) >= int64(c.countOf(e.Kind)):
			r.malformed(at, "%q exports %v %d, which does not exist, there are %d", e.Name, e.Kind, index, c.countOf(e.Kind))
		}
		if r.failed() {
			return
		}
		seen[e.Name] = true
		e.Index = int(index)
		if e.Kind == KindFunction {
			e.Signature = c.types[c.functions[index]]
		}
		c.exports = append(c.exports, e)
	}
}

func (c *contents) readStart(r *reader) {
	at := r.pos
	f := r.u32()
	switch {
	case r.failed():
	case int64(f) >= int64(len(c.functions)):
		r.malformed(at, "start function %d does not exist, there are %d", f, len(c.functions))
	case len(c.types[c.functions[f]].Params)+len(c.types[c.functions[f]].Results) > 0:
		r.malformed(at, "start function %d has parameters or results", f)
	}
	c.start = int(f)
}
