package meter

// contents is a module as far as metering and its callers need it decoded.
// The functions themselves stay bytes until they are rewritten.
type contents struct {
	module   []byte
	options  Options
	sections []section

	types     []Signature
	imports   []Import
	functions []uint32 // type indexes of all functions, imports first
	tables    []table  // those that the module defines
	memory    *Limits  // that the module defines
	exports   []Export
	start     bool

	importedFunctions, importedTables, importedMemories, importedGlobals int
	definedGlobals, codes                                                int
}

// table is a table that the module defines.
type table struct {
	element ValueType
	Limits
}

// decode reads everything but the instructions of functions, and believes no
// length: what it accepts, an engine can decode without large allocations.
func decode(module []byte, o Options) (*contents, *Error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	c := &contents{module: module, options: o, sections: sections}
	for _, s := range sections {
		r := c.reader(s)
		if read := sectionReaders[s.id]; read != nil {
			read(c, &r)
			r.finish(sectionNames[s.id] + " section")
		}
		if r.failed() {
			return nil, r.err
		}
	}
	if defined := len(c.functions) - c.importedFunctions; defined != c.codes {
		return nil, &Error{
			Kind: ErrMalformed, Offset: len(module), Function: -1,
			What: "the numbers of functions and of function bodies differ",
		}
	}
	return c, nil
}

// reader reads the section from its beginning.
func (c *contents) reader(s section) reader {
	return reader{buf: c.module, pos: s.start, end: s.end, section: sectionNames[s.id], function: -1}
}

// sectionReaders decode the sections. The code section has its own walk, which
// knows everything else.
var sectionReaders = [...]func(*contents, *reader){
	secType:      (*contents).readTypes,
	secImport:    (*contents).readImports,
	secFunction:  (*contents).readFunctions,
	secTable:     (*contents).readTables,
	secMemory:    (*contents).readMemories,
	secGlobal:    (*contents).readGlobals,
	secExport:    (*contents).readExports,
	secStart:     (*contents).readStart,
	secElement:   (*contents).readElements,
	secDataCount: (*contents).readDataCount,
	secCode:      (*contents).readCodeCount,
	secData:      (*contents).readData,
}

// maxArity is how many parameters and results a function or a block may have:
// it bounds what one instruction can move.
const maxArity = 256

func (c *contents) readTypes(r *reader) {
	n := r.count(3, "types")
	c.types = make([]Signature, 0, n)
	for range n {
		at := r.pos
		switch form := r.byte(); form {
		case 0x60:
		case 0x4e, 0x4f, 0x50, 0x5f, 0x5e:
			r.fail(ErrUnsupported, at, "build without garbage collection", "type form %#x (GC)", form)
		default:
			r.malformed(at, "type form %#x is unknown", form)
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
		r.fail(ErrLimit, at, "pass them in memory", "a type has %d %s, the limit is %d", n, what, maxArity)
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

// valueType reads the type of a value.
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
		r.malformed(at, "value type %#x is unknown", byte(t))
	}
}

// refType reads the type of a reference.
func (r *reader) refType() ValueType {
	at := r.pos
	t := r.valueType()
	if !r.failed() && t != FuncRef && t != ExternRef {
		r.malformed(at, "%v is no type of a reference", t)
	}
	return t
}

func (c *contents) readImports(r *reader) {
	n := r.count(4, "imports")
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
	r.malformed(at, "kind %#x is unknown", kind)
}

// addFunction reads the type of a function and counts it.
func (c *contents) addFunction(r *reader) Signature {
	at := r.pos
	t := r.u32()
	switch {
	case r.failed():
		return Signature{}
	case int64(t) >= int64(len(c.types)):
		r.malformed(at, "type %d is named, there are %d", t, len(c.types))
		return Signature{}
	case len(c.functions) >= c.options.MaxFunctions:
		r.fail(ErrLimit, at, "split the module, or raise the limit", "there are more than %d functions", c.options.MaxFunctions)
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

// maxTables bounds, with MaxTableElements, what tables can take of memory.
const maxTables = 16

func (c *contents) readTables(r *reader) {
	at := r.pos
	n := r.count(3, "tables")
	if n+c.importedTables > maxTables {
		r.fail(ErrLimit, at, "use fewer tables", "there are %d tables, the limit is %d", n+c.importedTables, maxTables)
	}
	for range n {
		at = r.pos
		if r.rest() > 0 && r.buf[at] == 0x40 {
			r.fail(ErrUnsupported, at, "", "a table with an initial value (typed function references)")
		}
		t := table{element: r.refType(), Limits: r.limits("table")}
		limit := uint32(min(c.options.MaxTableElements, 1<<27))
		if !r.failed() && t.Min > limit {
			r.fail(ErrLimit, at, "start with a smaller table", "a table starts with %d elements, the limit is %d", t.Min, limit)
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
			r.fail(ErrUnsupported, at, "build for one memory", "there is more than one memory (multi-memory)")
		}
		c.memory = &l
	}
}

func (c *contents) checkMemories(r *reader, at int) {
	if c.importedMemories > 1 {
		r.fail(ErrUnsupported, at, "build for one memory", "there is more than one memory (multi-memory)")
	}
}

// limits reads the sizes of a table or a memory.
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
		r.malformed(at, "the mutability of a global is %#x", m)
	}
}

func (c *contents) readGlobals(r *reader) {
	c.definedGlobals = r.count(4, "globals")
	for range c.definedGlobals {
		if r.failed() {
			return
		}
		r.globalType()
		c.constant(r)
	}
}

// constant passes over a constant expression: one constant and an end. More,
// extended constant expressions could, which nothing here was built for.
func (c *contents) constant(r *reader) {
	at := r.pos
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.skip(4)
	case opF64Const:
		r.skip(8)
	case opGlobalGet:
		// The index of the fuel, which does not exist yet, must not come to life.
		if g := r.u32(); !r.failed() && int64(g) >= int64(c.importedGlobals) {
			r.malformed(at, "a constant names global %d, %d are imported", g, c.importedGlobals)
		}
	case opRefNull:
		r.refType()
	case opRefFunc:
		r.u32()
	case opVector:
		if sub := r.vectorOp(); sub != vecConst {
			r.malformed(at, "SIMD instruction %#x is no constant", sub)
		}
		r.skip(16)
	default:
		r.malformed(at, "instruction %#x is no constant", op)
	}
	at = r.pos
	if end := r.byte(); end != opEnd && !r.failed() {
		r.fail(ErrUnsupported, at, "build without extended constants", "a constant of more than one instruction (extended constants)")
	}
}

func (c *contents) readExports(r *reader) {
	n := r.count(3, "exports")
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
		case e.Name == FuelGlobal:
			r.fail(ErrReserved, at, "rename the export", "the module exports %q, which metering adds", FuelGlobal)
		case seen[e.Name]:
			r.malformed(at, "%q is exported twice", e.Name)
		case e.Kind > KindGlobal:
			r.badKind(kindAt, byte(e.Kind))
		case int64(index) >= int64(c.countOf(e.Kind)):
			r.malformed(at, "%q exports %v %d, there are %d", e.Name, e.Kind, index, c.countOf(e.Kind))
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

// countOf is how many of the kind there are, imports counted.
func (c *contents) countOf(k Kind) int {
	switch k {
	case KindFunction:
		return len(c.functions)
	case KindTable:
		return c.importedTables + len(c.tables)
	case KindMemory:
		if c.memory != nil {
			return c.importedMemories + 1
		}
		return c.importedMemories
	default:
		return c.globals()
	}
}

// globals is how many globals the module has before metering, and so the index
// of the fuel.
func (c *contents) globals() int { return c.importedGlobals + c.definedGlobals }

func (c *contents) readStart(r *reader) {
	at := r.pos
	if f := r.u32(); !r.failed() && int64(f) >= int64(len(c.functions)) {
		r.malformed(at, "function %d is to start with, there are %d", f, len(c.functions))
	}
	c.start = true
}

// readElements passes over the segments of tables.
func (c *contents) readElements(r *reader) {
	n := r.count(2, "element segments")
	for range n {
		at := r.pos
		flags := r.u32()
		if flags > 7 {
			r.malformed(at, "an element segment has unknown flags %#x", flags)
		}
		if flags&1 == 0 { // active
			if flags&2 != 0 {
				r.u32() // the table
			}
			c.constant(r) // where in it
		}
		asExpressions := flags&4 != 0
		if flags&3 != 0 {
			r.elementKind(asExpressions)
		}
		if asExpressions {
			c.elementExpressions(r)
		} else {
			r.elementFunctions()
		}
		if r.failed() {
			return
		}
	}
}

func (r *reader) elementKind(asExpressions bool) {
	if asExpressions {
		r.refType()
		return
	}
	at := r.pos
	if k := r.byte(); k != 0 {
		r.malformed(at, "element kind %#x is unknown", k)
	}
}

func (r *reader) elementFunctions() {
	n := r.count(1, "elements")
	for range n {
		if r.failed() {
			return
		}
		r.u32()
	}
}

func (c *contents) elementExpressions(r *reader) {
	n := r.count(3, "elements")
	for range n {
		if r.failed() {
			return
		}
		c.constant(r)
	}
}

func (c *contents) readDataCount(r *reader) { r.u32() }

func (c *contents) readCodeCount(r *reader) {
	c.codes = r.count(3, "function bodies")
	r.pos = r.end
}

// readData passes over the segments of memory.
func (c *contents) readData(r *reader) {
	n := r.count(2, "data segments")
	for range n {
		at := r.pos
		flags := r.u32()
		switch {
		case flags > 2:
			r.malformed(at, "a data segment has unknown flags %#x", flags)
		case flags == 2:
			if m := r.u32(); m != 0 {
				r.fail(ErrUnsupported, at, "build for one memory", "a data segment names memory %d (multi-memory)", m)
			}
		}
		if flags != 1 {
			c.constant(r)
		}
		r.skip(r.count(1, "bytes of data"))
		if r.failed() {
			return
		}
	}
}

// describe is what a loader learns of the module.
func (c *contents) describe(code []byte) *Module {
	m := &Module{
		Code: code, Imports: c.imports, Exports: c.exports, Memory: c.memory,
		Start: c.start, Functions: c.codes,
	}
	for _, t := range c.tables {
		m.Tables = append(m.Tables, t.Limits)
	}
	return m
}
