// Where each node's cell is: groups as blocks, side by side, with the largest cells that fit.
// Nothing but arithmetic; heat_map.js draws it and asks it what lies under the pointer.

export const TITLE_PX = 18;
const GAP_X_PX = 16;
const GAP_Y_PX = 8;
const NARROWEST_BLOCK_PX = 56;
// Wide enough for a name, for a figure, or for colour alone.
const CELLS_PX = [
  [208, 64], [164, 52], [136, 46], [112, 40], [96, 36], [72, 30], [52, 26], [44, 24], [38, 22],
  ...Array.from({length: 25}, (_, index) => [30 - index, Math.min(30 - index, 22)]),
];
// How much wider than high a block may be, in cells.
const SHAPES = [1, 1.6, 2.6, 4.5, Infinity];

// `groups` is [{title, rows}], rows being numbers of nodes in the order in which they are shown.
export function layOut(groups, widthPx, heightPx) {
  let smallest = null;
  for (const cell of CELLS_PX) {
    for (const shape of groups.length === 1 ? [Infinity] : SHAPES) {
      const laid = placed(groups, widthPx, cell, shape);
      if (laid.heightPx <= heightPx) return laid;
      if (smallest === null || laid.cellWidth < smallest.cellWidth || laid.heightPx < smallest.heightPx) smallest = laid;
    }
  }
  return smallest;
}

function placed(groups, widthPx, [cellWidth, cellHeight], shape) {
  const mostAcross = Math.max(1, Math.floor(widthPx / cellWidth));
  const titlePx = groups.length === 1 && !groups[0].title ? 0 : TITLE_PX;
  const blocks = [];
  let x = 0, y = 0, shelfPx = 0;
  for (const {title, rows} of groups) {
    const fewest = Math.ceil(NARROWEST_BLOCK_PX / cellWidth);
    const square = Math.ceil(Math.sqrt(rows.length * shape * cellHeight / cellWidth));
    const across = Math.min(Math.max(Math.min(square, rows.length), Math.min(fewest, mostAcross)), mostAcross);
    const blockWidth = Math.max(across * cellWidth, Math.min(NARROWEST_BLOCK_PX, widthPx));
    const blockHeight = titlePx + Math.ceil(rows.length / across) * cellHeight;
    if (x > 0 && x + blockWidth > widthPx) {
      x = 0;
      y += shelfPx + GAP_Y_PX;
      shelfPx = 0;
    }
    blocks.push({title, rows, across, x, y, top: y + titlePx, width: blockWidth, bottom: y + blockHeight});
    x += blockWidth + GAP_X_PX;
    shelfPx = Math.max(shelfPx, blockHeight);
  }
  return {blocks, cellWidth, cellHeight, titlePx, heightPx: y + shelfPx};
}

// The place of a cell in the order of all: {block, index}, or null between them.
export function cellAt(layout, x, y) {
  for (let number = 0; number < layout.blocks.length; number += 1) {
    const block = layout.blocks[number];
    if (y < block.top || y >= block.bottom || x < block.x || x >= block.x + block.across * layout.cellWidth) continue;
    const across = Math.floor((x - block.x) / layout.cellWidth);
    const index = Math.floor((y - block.top) / layout.cellHeight) * block.across + across;
    return index < block.rows.length ? {block: number, index} : null;
  }
  return null;
}

export function cornerOf(layout, {block, index}) {
  const {x, top, across} = layout.blocks[block];
  return {x: x + (index % across) * layout.cellWidth, y: top + Math.floor(index / across) * layout.cellHeight};
}

export function rowAt(layout, place) {
  return place && layout.blocks[place.block].rows[place.index];
}

export function placeOf(layout, row) {
  for (let block = 0; block < layout.blocks.length; block += 1) {
    const index = layout.blocks[block].rows.indexOf(row);
    if (index >= 0) return {block, index};
  }
  return null;
}

// Where a key leads from a cell; null where there is nothing further.
export function moved(layout, {block, index}, key) {
  const {rows, across} = layout.blocks[block];
  switch (key) {
    case "ArrowRight":
      return index + 1 < rows.length ? {block, index: index + 1} : first(layout, block + 1);
    case "ArrowLeft":
      return index > 0 ? {block, index: index - 1} : last(layout, block - 1);
    case "ArrowDown":
      if (index + across < rows.length) return {block, index: index + across};
      return beyond(layout, {block, index}, 1);
    case "ArrowUp":
      if (index >= across) return {block, index: index - across};
      return beyond(layout, {block, index}, -1);
    case "PageDown":
      return first(layout, block + 1);
    case "PageUp":
      return first(layout, index > 0 ? block : block - 1);
    case "Home":
      return first(layout, 0);
    case "End":
      return last(layout, layout.blocks.length - 1);
    default:
      return null;
  }
}

function first(layout, block) {
  return layout.blocks[block] ? {block, index: 0} : null;
}

function last(layout, block) {
  return layout.blocks[block] ? {block, index: layout.blocks[block].rows.length - 1} : null;
}

// The nearest cell of the shelf of blocks above or below.
function beyond(layout, from, step) {
  const corner = cornerOf(layout, from);
  const here = layout.blocks[from.block];
  const shelves = [...new Set(layout.blocks.map((block) => block.y))];
  const shelf = shelves[shelves.indexOf(here.y) + step];
  if (shelf === undefined) return null;
  let nearest = null, distance = Infinity;
  layout.blocks.forEach((block, number) => {
    if (block.y !== shelf) return;
    const column = Math.min(Math.max(Math.round((corner.x - block.x) / layout.cellWidth), 0), Math.min(block.across, block.rows.length) - 1);
    const away = Math.abs(block.x + column * layout.cellWidth - corner.x);
    if (away >= distance) return;
    distance = away;
    const lines = Math.ceil(block.rows.length / block.across);
    const index = step > 0 ? column : (lines - 1) * block.across + column;
    nearest = {block: number, index: index < block.rows.length ? index : index - block.across};
  });
  return nearest;
}
