"""The op table. Importing this package fills it."""

from nestgrad.ops import (
    activations as activations,
)
from nestgrad.ops import (
    along as along,
)
from nestgrad.ops import (
    arranging as arranging,
)
from nestgrad.ops import (
    attention as attention,
)
from nestgrad.ops import (
    constants as constants,
)
from nestgrad.ops import (
    contractions as contractions,
)
from nestgrad.ops import (
    convolution as convolution,
)
from nestgrad.ops import (
    elementwise as elementwise,
)
from nestgrad.ops import (
    halving as halving,
)
from nestgrad.ops import (
    normalization as normalization,
)
from nestgrad.ops import (
    numbers as numbers,
)
from nestgrad.ops import (
    placing as placing,
)
from nestgrad.ops import (
    pooling as pooling,
)
from nestgrad.ops import (
    reductions as reductions,
)
from nestgrad.ops import (
    scans as scans,
)
from nestgrad.ops import (
    shaping as shaping,
)
from nestgrad.ops import (
    sorting as sorting,
)
from nestgrad.ops import (
    splitting as splitting,
)
from nestgrad.ops import (
    special as special,
)
from nestgrad.ops import (
    statistics as statistics,
)
from nestgrad.ops import (
    vectors as vectors,
)
from nestgrad.ops import (
    windows as windows,
)
from nestgrad.ops.table import TABLE as TABLE
from nestgrad.ops.table import Kind as Kind
from nestgrad.ops.table import Op as Op
from nestgrad.ops.table import Rule as Rule
from nestgrad.ops.table import define as define
