/* widths.h: the sizes of the model that the parts of paper/ are written for, under mnp's own names
 * of options: preset paper. A plan of other sizes runs op by op (fuse/match.c).
 *
 * Not all follows from here. Shapes of operands, of saved rows and of fp16 weights are numbers in
 * fuse/, and so are pitches and the shares of warps and lanes in kernels, which suit these sizes
 * and no others. Where that is so an assertion stands: a change here ends at each of these places
 * (docs/dev/gpu.md, "To change a width of the model").
 */
#ifndef MNP_CUDA_PAPER_WIDTHS_H
#define MNP_CUDA_PAPER_WIDTHS_H

enum { FUSED_POINTS = 128, FUSED_CONTEXT = 64 }; /* of a function and of its context, at most */
enum { FUSED_WAVES = 80, FUSED_FEATURES = 2 * FUSED_WAVES };    /* rff; sines and cosines       */
enum { FUSED_ENC_WIDTH = 64, FUSED_HEADS = 4, FUSED_D_R = 64 }; /* the set encoder            */
enum { FUSED_D_Z = 128, FUSED_HEAD_HIDDEN = 64 };               /* the latent                 */
enum { FUSED_FLOW_HIDDEN = 128, FUSED_BINS = 10 };              /* the conditioner, its spline */
enum { FUSED_RAW = 3 * FUSED_BINS - 1, FUSED_RAW_LD = 32 };     /* numbers of a spline, padded */

#endif
