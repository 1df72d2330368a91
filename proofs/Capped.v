(** The capped step of the kernel is the projection onto ball and box (docs/privacy/adaptive.md, "The projection"). *)
From Coq Require Import Reals Lra Psatz List Arith.
From Voxpop Require Import Vectors Steps.
Import ListNotations.
Open Scope R_scope.

(** Points of the unit ball and of the box [0, a] on the first n coordinates. *)
Definition ball_and_box (n : nat) (a : R) : set :=
  fun k => square n k <= 1 /\ forall i, (i < n)%nat -> 0 <= k i <= a.

Lemma ball_and_box_convex n a : convex (ball_and_box n a).
Proof.
  intros x y s [Bx Ix] [By Iy] S. split.
  - assert (D := dot_le_mean n x y).
    assert (E : square n (fun i => x i + s * (y i - x i))
                = (1 - s) * (1 - s) * square n x + 2 * s * (1 - s) * dot n x y + s * s * square n y).
    { unfold square, dot. clear. induction n; simpl; [ring|]. rewrite IHn. ring. }
    rewrite E. assert (0 <= s * (1 - s)) by nra. nra.
  - intros i I. specialize (Ix i I). specialize (Iy i I). nra.
Qed.

(** "K lies in the unit ball", so the step of the extra user has length 1 at most. *)
Lemma in_the_ball n a k : ball_and_box n a k -> norm n k <= 1.
Proof. intros [B _]. rewrite <- sqrt_1. now apply sqrt_le_1_alt. Qed.

(** ** What is nearest

    min(f g, a) with f at most 1, whose squares add up to 1, or to less with f = 1, is the nearest point. *)
Theorem capped_is_nearest n a f g :
  0 <= a -> 0 <= f <= 1 -> (forall i, (i < n)%nat -> 0 <= g i) ->
  let p := fun i => Rmin (f * g i) a in
  (f = 1 /\ square n p <= 1) \/ (0 < f /\ square n p = 1) ->
  nearest n (ball_and_box n a) g p.
Proof.
  intros A F G p H.
  assert (P : forall i, (i < n)%nat -> 0 <= p i <= a).
  { intros i I. unfold p. specialize (G i I). split; [apply Rmin_glb; nra | apply Rmin_r]. }
  split; [split; [destruct H; lra | exact P]|].
  intros k [Bk Ik].
  (* It is enough that the angle at p is not acute. *)
  enough (V : dot n (minus g p) (minus k p) <= 0).
  { assert (Q := square_nonneg n (minus k p)).
    assert (E : square n (minus g k) = square n (minus g p) - 2 * dot n (minus g p) (minus k p) + square n (minus k p)).
    { unfold square, dot, minus. clear. induction n; simpl; [ring|]. rewrite IHn. ring. }
    lra. }
  destruct H as [[F1 B] | [F0 B]].
  - (* f = 1: only coordinates at the cap have a gap beyond p, and there k is not above. *)
    unfold dot. apply Rle_trans with (total n (fun _ => 0)).
    + apply total_le. intros i I. unfold minus. specialize (Ik i I). unfold p. rewrite F1.
      unfold Rmin. destruct (Rle_dec (1 * g i) a); nra.
    + clear. induction n; simpl; lra.
  - (* The multiplier of the ball is 1 / f - 1, and those of the box are not negative. *)
    set (m := / f - 1). assert (M : 0 <= m).
    { unfold m. assert (1 <= / f) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra. }
    assert (T : dot n (minus g p) (minus k p) <= m * (dot n p k - square n p)).
    { unfold square, dot, m. rewrite <- (Rplus_0_r (total n (fun i => p i * k i) - _)).
      replace (total n (fun i => p i * k i) - total n (fun i => p i * p i) + 0)
        with (total n (fun i => p i * k i + -1 * (p i * p i))) by (rewrite total_plus, total_scale; ring).
      rewrite <- total_scale. apply total_le. intros i I. specialize (Ik i I). specialize (G i I). unfold minus.
      assert (X : g i = / f * (f * g i)) by (field; lra). assert (0 < / f) by now apply Rinv_0_lt_compat.
      unfold p. unfold Rmin. destruct (Rle_dec (f * g i) a); [nra|].
      assert (/ f * a <= g i) by nra. nra. }
    assert (D := dot_le_mean n p k). nra.
Qed.

(** ** The loop of the kernel, on real numbers

    [gaps] are those below the cap so far, [k] items are at the cap. *)
Definition squares (gaps : list R) : R := fold_right (fun g s => g * g + s) 0 gaps.
Definition below (a f : R) (gaps : list R) : list R := filter (fun g => if Rle_dec a (g * f) then false else true) gaps.

Definition factor (left : R) (gaps : list R) (before : R) : R :=
  if Rle_dec (squares gaps) left then 1 else if Rlt_dec 0 left then Rmax before (sqrt (left / squares gaps)) else before.

Fixpoint loop (rounds : nat) (a f : R) (k : nat) (gaps : list R) : R :=
  match rounds with
  | O => f
  | S rest =>
      let kept := below a f gaps in
      if length kept =? length gaps then f
      else let k' := (k + (length gaps - length kept))%nat in
           loop rest a (factor (1 - INR k' * (a * a)) kept f) k' kept
  end.

Definition kernel (a : R) (gaps : list R) : R :=
  let f := if Rle_dec (squares gaps) 1 then 1 else 1 / sqrt (squares gaps) in loop (length gaps) a f 0 gaps.

Definition all (phi : R -> R) (gaps : list R) : R := fold_right (fun g s => phi g + s) 0 gaps.

Lemma squares_all gaps : squares gaps = all (fun g => g * g) gaps.
Proof. reflexivity. Qed.

Lemma all_nonneg phi gaps : (forall g, In g gaps -> 0 <= phi g) -> 0 <= all phi gaps.
Proof.
  induction gaps as [|g gaps IH]; simpl; intros H; [lra|].
  assert (0 <= phi g) by (apply H; auto). assert (0 <= all phi gaps) by (apply IH; auto). lra.
Qed.

Lemma all_le phi psi gaps : (forall g, In g gaps -> phi g <= psi g) -> all phi gaps <= all psi gaps.
Proof.
  induction gaps as [|g gaps IH]; simpl; intros H; [lra|].
  assert (phi g <= psi g) by (apply H; auto). assert (all phi gaps <= all psi gaps) by (apply IH; auto). lra.
Qed.

Lemma all_ext phi psi gaps : (forall g, In g gaps -> phi g = psi g) -> all phi gaps = all psi gaps.
Proof. intros H. apply Rle_antisym; apply all_le; intros; rewrite H; auto; lra. Qed.

Lemma all_scale c phi gaps : all (fun g => c * phi g) gaps = c * all phi gaps.
Proof. induction gaps as [|g gaps IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma all_const c gaps : all (fun _ => c) gaps = INR (length gaps) * c.
Proof. induction gaps as [|g gaps IH]; [simpl; ring|]. change (length (g :: gaps)) with (S (length gaps)). rewrite S_INR. simpl. rewrite IH. ring. Qed.

Definition above (a f : R) (gaps : list R) : list R := filter (fun g => if Rle_dec a (g * f) then true else false) gaps.

Lemma parts a f phi gaps : all phi gaps = all phi (above a f gaps) + all phi (below a f gaps).
Proof. induction gaps as [|g gaps IH]; simpl; [ring|]. destruct (Rle_dec a (g * f)); simpl; rewrite IH; ring. Qed.

Lemma lengths a f gaps : length gaps = (length (above a f gaps) + length (below a f gaps))%nat.
Proof. induction gaps as [|g gaps IH]; simpl; [reflexivity|]. destruct (Rle_dec a (g * f)); simpl; rewrite IH; lia. Qed.

(** What holds whenever the loop begins a round: [capped] items reach the cap at f, and either nothing is lost with
    f = 1, or the squares of the items at the cap and of the others add up to 1. *)
Definition invariant (a f : R) (capped gaps start : list R) : Prop :=
  0 < f <= 1 /\ (forall g, In g start -> 0 <= g) /\ (forall g, In g gaps -> 0 <= g) /\
  (forall g, In g capped -> a <= g * f) /\ (forall phi, all phi start = all phi capped + all phi gaps) /\
  let used := INR (length capped) * (a * a) + f * f * squares gaps in (f = 1 /\ used <= 1) \/ used = 1.

Definition optimal (a f : R) (start : list R) : Prop :=
  0 < f <= 1 /\ let used := all (fun g => Rmin (f * g) a * Rmin (f * g) a) start in (f = 1 /\ used <= 1) \/ used = 1.

Lemma finished a f capped gaps start :
  0 < a -> invariant a f capped gaps start -> length (below a f gaps) = length gaps -> optimal a f start.
Proof.
  intros A (F & _ & G & C & P & U) L. split; [exact F|].
  assert (N : above a f gaps = []) by (apply length_zero_iff_nil; rewrite (lengths a f gaps) in L; lia).
  assert (B : forall g, In g gaps -> g * f < a).
  { intros g I. apply Rnot_le_lt. intros Q. assert (I' : In g (above a f gaps)).
    { apply filter_In. split; [exact I|]. destruct (Rle_dec a (g * f)); tauto. }
    rewrite N in I'. inversion I'. }
  cbv zeta. rewrite P.
  rewrite (all_ext _ (fun _ => a * a) capped), all_const.
  2: { intros g I. specialize (C g I). rewrite Rmin_right; lra. }
  rewrite (all_ext _ (fun g => f * f * (g * g)) gaps), all_scale.
  2: { intros g I. specialize (B g I). rewrite Rmin_left; [ring | lra]. }
  exact U.
Qed.

Lemma next_round a f capped gaps start :
  0 < a -> invariant a f capped gaps start ->
  let kept := below a f gaps in let k := (length capped + (length gaps - length kept))%nat in
  invariant a (factor (1 - INR k * (a * a)) kept f) (capped ++ above a f gaps) kept start.
Proof.
  intros A (F & S & G & C & P & U) kept k.
  assert (K : INR k = INR (length capped) + INR (length (above a f gaps))).
  { unfold k, kept. rewrite <- plus_INR. f_equal. rewrite (lengths a f gaps). lia. }
  assert (G' : forall g, In g kept -> 0 <= g) by (intros g I; apply G; now apply filter_In in I).
  assert (C' : forall g, In g (capped ++ above a f gaps) -> a <= g * f /\ 0 <= g).
  { intros g I. apply in_app_or in I. destruct I as [I | I].
    - split; [now apply C|]. specialize (C g I). nra.
    - apply filter_In in I. destruct I as [I Q]. destruct (Rle_dec a (g * f)); [split; auto | discriminate]. }
  (* What is left is at least what the others use at the factor so far. *)
  assert (M : INR (length (above a f gaps)) * (a * a) <= f * f * squares (above a f gaps)).
  { rewrite squares_all, <- all_const, <- all_scale. apply all_le. intros g I.
    assert (Q := C' g (in_or_app _ _ _ (or_intror I))). nra. }
  assert (T : squares gaps = squares (above a f gaps) + squares kept) by (rewrite !squares_all; apply parts).
  assert (L : f * f * squares kept <= 1 - INR k * (a * a)) by (rewrite K; cbv zeta in U; rewrite T in U; destruct U; nra).
  assert (Q0 : 0 <= squares kept) by (rewrite squares_all; apply all_nonneg; intros; nra).
  set (left := 1 - INR k * (a * a)) in *.
  assert (R : f <= factor left kept f /\ 0 < factor left kept f <= 1 /\
              ((factor left kept f = 1 /\ squares kept <= left) \/
               factor left kept f * factor left kept f * squares kept = left)).
  { unfold factor. destruct (Rle_dec (squares kept) left) as [E | E];
      [split; [lra | split; [lra | left; split; lra]]|].
    destruct (Rlt_dec 0 left) as [O | O].
    - assert (D : 0 < squares kept) by lra. assert (X : left / squares kept < 1) by (apply Rmult_lt_reg_r with (squares kept); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
      assert (X0 : 0 < left / squares kept) by (apply Rdiv_lt_0_compat; lra).
      assert (Y : f <= sqrt (left / squares kept)).
      { rewrite <- (sqrt_square f) by lra. apply sqrt_le_1_alt.
        apply Rmult_le_reg_r with (squares kept); [lra|]. unfold Rdiv. rewrite (Rmult_assoc left), Rinv_l; lra. }
      rewrite Rmax_right by exact Y.
      assert (Z : sqrt (left / squares kept) <= 1) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra).
      split; [exact Y|]. split; [lra|]. right. rewrite sqrt_sqrt by lra. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
    - split; [lra|]. split; [exact F|]. right. nra. }
  destruct R as (R1 & R2 & R3).
  split; [exact R2|]. split; [exact S|]. split; [exact G'|]. split.
  { intros g I. assert (X := C' g I). nra. }
  split.
  { intros phi. rewrite P, (parts a f phi gaps). unfold all, kept. rewrite fold_right_app.
    assert (E : forall c, fold_right (fun g s => phi g + s) c capped = all phi capped + c).
    { clear. intros c. induction capped as [|g capped IH]; simpl; [ring|]. rewrite IH. ring. }
    rewrite !E. unfold all. ring. }
  cbv zeta. rewrite app_length, plus_INR, <- K. assert (W : left = 1 - INR k * (a * a)) by reflexivity. destruct R3 as [[R3 R4] | R3]; [left; split; [exact R3 | rewrite R3; lra] | right; lra].
Qed.

Lemma loop_ends rounds : forall a f capped gaps start,
  0 < a -> (length gaps <= rounds)%nat -> invariant a f capped gaps start ->
  optimal a (loop rounds a f (length capped) gaps) start.
Proof.
  induction rounds as [|rounds IH]; intros a f capped gaps start A N I.
  - apply (finished a f capped gaps start A I). destruct gaps; simpl in *; [reflexivity | lia].
  - simpl. destruct (length (below a f gaps) =? length gaps) eqn:E.
    + apply (finished a f capped gaps start A I). now apply Nat.eqb_eq.
    + apply Nat.eqb_neq in E. assert (L := lengths a f gaps).
      assert (J := next_round a f capped gaps start A I). cbv zeta in J.
      assert (B : (length (below a f gaps) <= rounds)%nat) by lia.
      specialize (IH a _ _ _ _ A B J). rewrite app_length in IH.
      assert (D : (length gaps - length (below a f gaps) = length (above a f gaps))%nat) by lia.
      rewrite D in *.
      exact IH.
Qed.

Theorem kernel_is_optimal a gaps : 0 < a -> (forall g, In g gaps -> 0 <= g) -> optimal a (kernel a gaps) gaps.
Proof.
  intros A G. unfold kernel. apply (loop_ends _ a _ [] gaps gaps A); [lia|].
  assert (Q : 0 <= squares gaps) by (rewrite squares_all; apply all_nonneg; intros; nra).
  assert (F : let f := if Rle_dec (squares gaps) 1 then 1 else 1 / sqrt (squares gaps) in
              0 < f <= 1 /\ ((f = 1 /\ f * f * squares gaps <= 1) \/ f * f * squares gaps = 1)).
  { cbv zeta. destruct (Rle_dec (squares gaps) 1) as [E | E]; [split; [lra | left; split; lra]|].
    assert (1 < sqrt (squares gaps)) by (rewrite <- sqrt_1; apply sqrt_lt_1; lra).
    assert (X : sqrt (squares gaps) * sqrt (squares gaps) = squares gaps) by (apply sqrt_sqrt; lra).
    set (r := sqrt (squares gaps)) in *. assert (0 < / r) by (apply Rinv_0_lt_compat; lra).
    assert (r * / r = 1) by (field; lra).
    split; [split; unfold Rdiv; nra|]. right. rewrite <- X. field. lra. }
  cbv zeta in F. destruct F as [F1 F2]. split; [exact F1|]. split; [exact G|]. split; [exact G|].
  split; [intros g []|]. split; [intros; simpl; ring|]. cbv zeta. simpl INR. simpl in F2. rewrite Rmult_0_l, Rplus_0_l. exact F2.
Qed.

Lemma all_of_vector n g phi : all phi (map g (seq 0 n)) = total n (fun i => phi (g i)).
Proof.
  induction n as [|n IH]; [reflexivity|]. rewrite seq_S, map_app. simpl.
  assert (E : forall l c, all phi (l ++ [c]) = all phi l + phi c).
  { intros l c. induction l; simpl in *; [ring|]. rewrite IHl. ring. }
  rewrite E, IH. reflexivity.
Qed.

(** adaptive.md, "the user's step is the projection of the gaps onto the unit ball and the box": what the loop of the
    kernel computes, up to its rounding, for any number of items, gaps and cap. *)
Theorem kernel_projects n a g :
  0 < a -> (forall i, (i < n)%nat -> 0 <= g i) ->
  let f := kernel a (map g (seq 0 n)) in nearest n (ball_and_box n a) g (fun i => Rmin (f * g i) a).
Proof.
  intros A G f.
  assert (O : optimal a f (map g (seq 0 n))).
  { apply kernel_is_optimal; [exact A|]. intros x I. apply in_map_iff in I. destruct I as [i [E I]]. subst x.
    apply G. apply in_seq in I. lia. }
  destruct O as [F U]. cbv zeta in U. rewrite all_of_vector in U.
  apply capped_is_nearest; try lra; [exact G|]. unfold square, dot. destruct U as [U | U]; [left | right]; split; lra || tauto.
Qed.

(** So two histograms are brought no further apart by a user under caps. *)
Theorem capped_step_nonexpansive n a z1 z2 :
  0 < a -> (forall i, (i < n)%nat -> 0 <= z1 i) -> (forall i, (i < n)%nat -> 0 <= z2 i) ->
  let step z := fun i => Rmin (kernel a (map z (seq 0 n)) * z i) a in
  norm n (minus (minus z1 (step z1)) (minus z2 (step z2))) <= norm n (minus z1 z2).
Proof.
  intros A Z1 Z2 step. apply norm_le. apply (step_nonexpansive n (ball_and_box n a)).
  - apply ball_and_box_convex.
  - now apply kernel_projects.
  - now apply kernel_projects.
Qed.

Print Assumptions kernel_projects.
Print Assumptions capped_step_nonexpansive.
