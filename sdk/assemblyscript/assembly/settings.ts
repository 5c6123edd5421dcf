import { Texts } from "./texts";
import { Bytes, Floats, Ints, Longs } from "./views";

/** The type of a setting. */
export enum Kind {
  BOOL = 1,
  INTEGER,
  NUMBER,
  /** ns */
  DURATION,
  TEXT,
  TEXTS,
  /** Named numbers. */
  NUMBERS,
}

/**
 * One key of the configuration. The host parses and validates the configuration by
 * it, and adds defaults.
 */
export class Setting {
  preset: string = "";
  isRequired: bool = false;
  min: string = "";
  max: string = "";
  texts: StaticArray<string> = [];
  low: string = "";
  high: string = "";
  values: StaticArray<string> = [];

  /** Its name in lower camel case, and one sentence for operators, with the unit. */
  constructor(public name: string, public kind: Kind, public doc: string) {}

  /** The default in the form of a configuration: "10m", "0.5", "a,b", "x=1,y=2". */
  default(text: string): this {
    this.preset = text;
    return this;
  }

  /** Makes the setting required. */
  required(): this {
    this.isRequired = true;
    return this;
  }

  /**
   * The inclusive limits, as numbers of JSON: texts, so that a guest need not format
   * numbers. The limits of a duration are in seconds.
   */
  between(min: string, max: string): this {
    this.min = min;
    this.max = max;
    return this;
  }

  /** The lower limit, in the form of between. */
  atLeast(min: string): this {
    this.min = min;
    return this;
  }

  /** The allowed texts. */
  oneOf(texts: StaticArray<string>): this {
    this.texts = texts;
    return this;
  }

  /** The lowest and the highest value that `cede policy tune` tries, in the form of between. */
  range(low: string, high: string): this {
    this.low = low;
    this.high = high;
    return this;
  }

  /** The values that `cede policy tune` tries, in the form of a configuration. They replace a range. */
  choices(values: StaticArray<string>): this {
    this.values = values;
    return this;
  }
}

/** A number of a setting of kind NUMBERS. */
export class NamedNumber {
  constructor(public name: string, public number: f64) {}
}

/**
 * The configuration, valid while configure runs. Reading a setting that is not
 * declared, or with the getter of another kind, is a defect of the policy and throws.
 */
@unmanaged
export class Config {
  length: i32;
  name: Ints = changetype<Ints>(0);
  kind: Bytes = changetype<Bytes>(0);
  item: Ints = changetype<Ints>(0);
  integers: Longs = changetype<Longs>(0);
  numbersOf: Floats = changetype<Floats>(0);
  text_: Ints = changetype<Ints>(0);
  table: Texts = new Texts();

  bool(name: string): bool {
    return this.integers[this.one(name, Kind.BOOL)] != 0;
  }

  integer(name: string): i64 {
    return this.integers[this.one(name, Kind.INTEGER)];
  }

  number(name: string): f64 {
    return this.numbersOf[this.one(name, Kind.NUMBER)];
  }

  /** ns */
  duration(name: string): i64 {
    return this.integers[this.one(name, Kind.DURATION)];
  }

  text(name: string): string {
    return this.table.get(this.text_[this.one(name, Kind.TEXT)]);
  }

  /** The texts of a setting, in their order in the configuration. */
  texts(name: string): string[] {
    const list: string[] = [];
    for (let i = this.first(name, Kind.TEXTS), end = this.after(i, name); i < end; i++) {
      list.push(this.table.get(this.text_[i]));
    }
    return list;
  }

  /** The named numbers of a setting, ascending by name. */
  numbers(name: string): NamedNumber[] {
    const list: NamedNumber[] = [];
    for (let i = this.first(name, Kind.NUMBERS), end = this.after(i, name); i < end; i++) {
      list.push(new NamedNumber(this.table.get(this.item[i]), this.numbersOf[i]));
    }
    return list;
  }

  private one(name: string, kind: Kind): i32 {
    const i = this.first(name, kind);
    if (i == this.length) throw new Error("there is no setting " + name);
    return i;
  }

  /** The first value of a setting. */
  private first(name: string, kind: Kind): i32 {
    for (let i = 0; i < this.length; i++) {
      if (!this.table.equals(this.name[i], name)) continue;
      if (this.kind[i] != kind) throw new Error("the setting has another kind: " + name);
      return i;
    }
    return this.length;
  }

  /** The end of the values of a setting, which are adjacent. */
  private after(i: i32, name: string): i32 {
    while (i < this.length && this.table.equals(this.name[i], name)) i++;
    return i;
  }
}
