// How numbers, times and states are put into words; everything that shows them uses it.

const COUNT = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const UNKNOWN = "–";

export const STATE_WORDS = {
  f: "fresh reading",
  s: "stale reading",
  m: "no reading",
  i: "implausible reading",
};
const STATE_LETTERS = {fresh: "f", stale: "s", missing: "m", implausible: "i"};

const isKnown = (value) => value !== null && value !== undefined;

export function count(value) {
  if (!isKnown(value)) return UNKNOWN;
  return Number.isInteger(value) && value >= 0 && value < 1000 ? String(value) : COUNT.format(value);
}

export function counted(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

export function signed(value) {
  return value > 0 ? `+${count(value)}` : count(value).replace("-", "−");
}

export function percent(share) {
  if (!isKnown(share)) return UNKNOWN;
  const digits = share > 0 && share < 0.0995 ? 1 : 0;
  return `${(100 * share).toFixed(digits)} %`;
}

// Links are sold and stated in bits, measured in bytes.
export function bits(bytesPerSecond) {
  return isKnown(bytesPerSecond) ? `${scaled(8 * bytesPerSecond, 1000, ["", "k", "M", "G", "T"])}b/s` : UNKNOWN;
}

export function bytes(value) {
  return `${scaled(value, 1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"])}B`;
}

function scaled(value, step, prefixes) {
  let power = 0;
  while (Math.abs(value) >= step && power < prefixes.length - 1) {
    value /= step;
    power += 1;
  }
  return `${threeDigits(value)} ${prefixes[power]}`;
}

function threeDigits(value) {
  const digits = Math.abs(value) >= 99.5 ? 0 : Math.abs(value) >= 9.95 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

export function duration(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  if (seconds < 1e-3) return `${threeDigits(1e6 * seconds)} µs`;
  if (seconds < 1) return `${threeDigits(1e3 * seconds)} ms`;
  if (seconds < 120) return `${threeDigits(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

export function timeOfDay(unixSeconds) {
  return TIME.format(new Date(1000 * unixSeconds));
}

export function moment(unixSeconds) {
  return new Date(1000 * unixSeconds).toISOString();
}

// cpu is in thousandths of a core, memory and storage in bytes, all else are counts.
export function amount(resource, value) {
  if (!isKnown(value)) return UNKNOWN;
  if (typeof value === "string") return value;
  if (resource === "cpu") return threeDigits(value / 1000);
  if (/memory|storage|hugepages/.test(resource)) return bytes(value);
  return count(value);
}

// Where a pod goes; of another scheduler's pod, where it is and where it would be.
export function placeWords({node, extender_verb: verb, actual_node: isOn}) {
  if (verb) return `${node} is advised (asked to ${verb})${isOn ? `, it is on ${isOn}` : ""}`;
  if (!isOn) return `it goes to ${node}`;
  return isOn === node ? `agrees: ${node}` : `it would be on ${node}, is on ${isOn}`;
}

// "4.2 Gb/s in, 1 Gb/s out of 10 Gb/s, stale reading"
export function measuredWords(measured) {
  if (!measured) return "nothing was measured";
  const guessed = measured.is_capacity_guessed ? " (guessed)" : "";
  const letter = STATE_LETTERS[measured.state] ?? measured.state;
  const state = letter === "f" ? "" : `, ${STATE_WORDS[letter] ?? measured.state}`;
  const traffic = isKnown(measured.receive) ? `${bits(measured.receive)} in, ${bits(measured.transmit)} out` : "no traffic known";
  return `${traffic} of ${bits(measured.capacity)}${guessed}${state}`;
}

export function addedWords(measured) {
  const added = measured ? Math.max(measured.added_receive || 0, measured.added_transmit || 0) : 0;
  return added > 0 ? `+${bits(added)}` : "";
}
